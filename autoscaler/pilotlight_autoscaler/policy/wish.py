"""How many containers a function should have, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Warmth(StrEnum):
    """In what state the containers of a function should be: the cheapest that keeps its promise."""

    READY = "ready"
    PARKED = "parked"  # off their slices, with their processes and memory
    NONE = "none"


class ScalingRule(StrEnum):
    """What decided the number. The first of them that asks for it is named."""

    SHUT_DOWN = "shut-down"
    CALLS = "calls"
    LEVEL = "service-level"
    PACE = "pace"
    BACKLOG = "backlog"
    PLANNED = "planned"
    TAKEN_OVER = "taken-over"
    ROLLOUT = "rollout"
    BUFFER = "buffer"
    WARM = "warm-window"
    FLOOR = "floor"
    FORECAST = "forecast"
    CEILING = "ceiling"
    CONSOLIDATION = "consolidation"
    SILENT_HOME = "silent-home"
    COOLDOWN = "cooldown"
    UNFUNDED = "budget"
    NOBODY_CALLS = "nobody-calls"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Of one function, over all its versions."""

    count: int
    """Containers that should be there."""
    tier: Warmth
    rule: ScalingRule
    because: str
    """A sentence."""
    asked_by: ScalingRule = ScalingRule.NOBODY_CALLS
    """The rule that asks for the containers of the current version, whatever bounds or holds their number."""
    look_again_at: float
    """The instant from which on it may be another without any news."""
    by_version: Mapping[str, int] = field(default_factory=dict)
    """The count, split."""
    declared: int = 0
    """Of the current version, those that calls, jobs, people's word or its specification ask for: the rest is there by
    the platform's guess."""
    ahead: int = 0
    """Of them, those that a forecast alone asks for."""
    holds: bool = False
    """Whether none that is there should go, however many there are."""
