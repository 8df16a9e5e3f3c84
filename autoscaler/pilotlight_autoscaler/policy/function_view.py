"""A function as the policy sees it: all its versions that are deployed, called or running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def current(self) -> str:
        """The version that is deployed, always the same of several; "": none is."""
        return max([version for version, view in self.versions.items() if view.deployed], default="")

    @cached_property
    def is_called(self) -> bool:
        """Whether calls have come lately, however short."""
        return any(view.demand is not None and view.demand.arrivals > 0 for view in self.versions.values())

    @cached_property
    def size(self) -> int:
        """Containers of all versions, those that come included."""
        return sum([view.size for view in self.versions.values()])

    @cached_property
    def needed(self) -> int:
        """Containers that calls need now."""
        return sum([needed_by_calls(view) for view in self.versions.values()])

    @cached_property
    def window_s(self) -> float:
        """How long an idle container stays anyway."""
        return self.versions[self.current].window_s if self.current else 0.0

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
