"""Metered usage, from agents to the stream of usage."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.messages.agent_messages import Message


class LeaseState(StrEnum):
    FREE = "free"  # unused: the operator pays
    BLANK = "blank"  # held by a blank: the operator pays
    LOADING = "loading"
    IDLE = "idle"  # ready, without calls
    BUSY = "busy"
    DRAINING = "draining"


class CallShare(msgspec.Struct, frozen=True):
    """One call's exact part of a busy interval."""

    call_id: str = msgspec.field(name="call")
    tenant: str
    ns: int
    ended: str = ""
    """The outcome, in the interval in which the call ended; else ""."""
    batch_size: int = 1


class UsageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One metered interval of one slice in one state. `id` is deterministic, so a repeated event counts once.

    For BUSY, the shares sum to `t1 - t0` exactly.
    """

    id: str
    """{instance}.{slice}.{n}"""
    node: str
    device: str
    slice: str
    ppm: int
    price: str
    state: LeaseState
    t0: int
    """Nanoseconds of the node's boot clock."""
    t1: int
    ended_at: float = msgspec.field(name="wall")
    """`t1` in unix seconds, for reports only."""
    tenant: str = ""
    """Who pays; "" is the operator."""
    app: str = ""
    function: str = ""
    version: str = ""
    container: str = ""
    shares: tuple[CallShare, ...] = ()


class UsageBatch(Message, frozen=True, kw_only=True):
    events: tuple[UsageEvent, ...]
