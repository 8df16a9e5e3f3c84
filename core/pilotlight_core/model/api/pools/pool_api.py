"""Answers of the API about pools of nodes. What is asked is `PoolTerms`."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.pools.pool_terms import PoolTerms


class PoolMachineInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of a pool."""

    node: str
    launch: str
    type: str
    zone: str
    state: str
    """"launching", "up", "draining" or "ending"."""
    since: float
    """Unix seconds: when it came into its state."""
    usd_per_hour: float
    gpus: int = 0
    provider_id: str = ""
    reason: str = ""
    """Why it goes."""


class PoolInfo(msgspec.Struct, frozen=True, kw_only=True):
    pool: str
    state: str
    """"open", or "draining": all of its nodes go, and none comes."""
    terms: PoolTerms
    machines: list[PoolMachineInfo] = []
    usd_per_hour: float = 0.0
    """Of its machines now."""


class PoolList(msgspec.Struct, frozen=True, kw_only=True):
    pools: list[PoolInfo]
