"""A function as the policy sees it: all its versions that are deployed, called or running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.scaling_policy import VersionView

PLANNED_MARGIN_S = 2.0
"""Containers for planned calls start so much earlier than a start takes."""


@dataclass(frozen=True, kw_only=True)
class PlannedCalls:
    """Calls whose time is known and has not come: jobs that may not begin before an instant."""

    due_in_s: float
    """Until the first of them."""
    calls: int
    """At least so many, about that time."""
    version: str = ""
    """That they will be for; "": the one that is deployed by then."""

    def is_soon(self, load_s: float) -> bool:
        """Whether their containers should start now, if a start takes so many seconds."""
        return self.due_in_s <= load_s + PLANNED_MARGIN_S


@dataclass(frozen=True, kw_only=True)
class FunctionView:
    name: str
    """`tenant:app.function`."""
    versions: Mapping[str, VersionView]
    """By id."""
    planned: PlannedCalls | None = None
    """None: nothing is known."""
    current: str = field(init=False)
    """The version that is deployed, always the same of several; "": none is."""
    is_called: bool = field(init=False)
    """Whether calls have come lately, however short."""
    size: int = field(init=False)
    """Containers of all versions, those that come included."""
    needed: int = field(init=False)
    """Containers that calls need now."""
    window_s: float = field(init=False)
    """How long an idle container stays anyway."""

    def __post_init__(self) -> None:
        # Read many times by whoever decides, so worked out once.
        current, is_called, size, needed = "", False, 0, 0
        for version, view in self.versions.items():
            if view.deployed and version > current:
                current = version
            is_called = is_called or (view.demand is not None and view.demand.arrivals > 0)
            size += view.size
            needed += needed_by_calls(view)
        object.__setattr__(self, "current", current)
        object.__setattr__(self, "is_called", is_called)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "needed", needed)
        object.__setattr__(self, "window_s", self.versions[current].window_s if current else 0.0)

    @property
    def service_s(self) -> float:
        """How long its calls run, of the current version; 0: nothing says it now."""
        current = self.versions.get(self.current)
        return current.demand.service_ms / 1000.0 if current is not None and current.demand is not None else 0.0

    @property
    def is_foretold(self) -> bool:
        """Whether what its past foretells may keep or start containers."""
        return not self.current or self.versions[self.current].is_foretold


def needed_by_calls(view: VersionView) -> int:
    """Containers that a version's calls need now, within its ceiling."""
    if view.is_shut_down:
        return 0
    return min(view.wanted, view.ceiling)
