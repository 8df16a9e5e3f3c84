"""The bodies of the HTTP API about scaling: why a function has the containers that it has."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.placement_api import DecisionInfo


class ScalingChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a function should have, from an instant on."""

    at: str
    """ISO 8601, UTC."""
    wanted: int
    there: int
    """Containers that there were, those on their way counted."""
    rule: str
    because: str
    ahead: int = 0
    """Of those that are wanted, the ones that a forecast alone asks for."""


class MethodCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a way to foretell would have cost lately, the more recent the more."""

    method: str
    idle_minutes: float
    cold_starts: float
    chosen: bool = False


class ScalingExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a function has the containers that it has."""

    lines: tuple[str, ...]
    more_needs: str = ""
    """What it would take to have one more."""
    load_s: float = 0.0
    """How long a start takes, as far as it is known."""
    predicted: int = 0
    """Containers that its past foretells for the coming minute."""
    methods: tuple[MethodCost, ...] = ()
    changes: tuple[ScalingChange, ...] = ()
    """The latest last."""
    decisions: tuple[DecisionInfo, ...] = ()
    """Of placement."""
