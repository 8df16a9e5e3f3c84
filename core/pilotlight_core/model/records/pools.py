"""Pools of nodes: what operators say of each, and the nodes that the controller has launched in them.

    LAUNCHING ──it reports──▶ UP ──it is too many──▶ DRAINING ──it is empty──▶ ENDING ──it is listed no more──▶ gone
        └──────── it never reports, or is lost ──────────────────────────────────▶ ENDING

The record of a launch is written before its machine is asked for, and its id is the token by which the provider knows
that two questions are one. Whatever is done to a machine follows from its record, so that whoever leads next goes on.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.api.pools.pool_terms import PoolTerms

POOL_KEYS = "pool."
LAUNCH_KEYS = "launch."
MOST_POOLS = 100


class PoolState(StrEnum):
    OPEN = "open"
    DRAINING = "draining"


class PoolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `pool.{name}`."""

    name: str
    terms: PoolTerms
    id: str = ""
    """Of this pool alone, among the pools of all platforms: machines have it as a tag, and belong to nobody else."""
    state: PoolState = PoolState.OPEN

    @property
    def is_open(self) -> bool:
        return self.state is PoolState.OPEN


class LaunchState(StrEnum):
    LAUNCHING = "launching"
    UP = "up"
    DRAINING = "draining"
    ENDING = "ending"


class LaunchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that was asked for, until it is gone. Key: `launch.{pool}.{slot}`.

    Since a pool has as many slots as it may have nodes, and a record is created only where there is none, no two
    controllers that both believe that they lead launch more than that, nor twice for one slot.
    """

    id: str
    """Of this launch alone; also the token by which the provider knows it."""
    pool: str
    slot: int
    node: str
    type: str
    zone: str
    types: tuple[str, ...] = ()
    """Those that would do, in the order in which the provider was asked."""
    spot: bool = False
    state: LaunchState = LaunchState.LAUNCHING
    epoch: int = 0
    """Of the leader that wrote it last."""
    made_at: float = 0.0
    """Unix seconds, as all that follow."""
    changed_at: float = 0.0
    """When it came into its state."""
    provider_id: str = ""
    """The machine's, as the provider lists it; "": not known yet."""
    reason: str = ""
    """Why it goes."""
    gpus: int = 0
    usd_per_hour: float = 0.0
    digest: str = ""
    """Of the pool's terms, when it was made."""
    join_token: str = ""
    """The id of the token by which it joins."""
    former_tokens: tuple[str, ...] = ()
    """Of those that leaders before have made, one of which the machine may have been given."""
    stands_in: str = ""
    """The spot pool for one of whose least nodes it is there, until that is ready; "": for none."""

    @property
    def key(self) -> str:
        return f"{LAUNCH_KEYS}{self.pool}.{self.slot}"

    @property
    def is_going(self) -> bool:
        return self.state in (LaunchState.DRAINING, LaunchState.ENDING)
