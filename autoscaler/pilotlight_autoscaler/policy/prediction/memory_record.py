"""What is stored of a function's memory."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.policy.prediction.prewarm_budget import FIRST


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `FunctionMemory` as it is stored. Readers ignore what they do not know."""

    minute: int
    """The one that was going on, since 1970."""
    needed: int = 0
    loads_ms: tuple[int, ...] = ()
    idle: tuple[tuple[tuple[int, int], ...], ...] = ()
    """For each level of concurrency, the weights (times 16) of the bins that weigh most."""
    never: tuple[int, ...] = ()
    ages: tuple[int, ...] = ()
    """Minutes since each level was needed; -1: it never was."""
    known: tuple[int, ...] = ()
    """Minutes since each level was needed first."""
    rates: tuple[tuple[int, ...], ...] = ()
    """Minutes that needed it, by half-life, times 64."""
    weights: tuple[tuple[int, ...], ...] = ()
    """Of the experts, for each level with idle times, times 4,000."""
    days: tuple[bytes, ...] = ()
    """Of each, the square root of the part of minutes that is called, times 255, by half-hours."""
    costs: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By method, idle minutes and cold starts, times 16."""
    chosen: str = ""
    forecast: tuple[int, int] = (0, 0)
    """Level and trend, times 16."""
    errors: tuple[int, ...] = ()
    """Times 16."""
    prewarms: int = FIRST
    minutes: int = 0
    """That were seen to end."""
    version: str = ""
    """The deployed one."""
    service_ms: int = 0
