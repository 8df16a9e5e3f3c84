"""The quarantine of versions on which a pass fails, so that decisions on all others go on.

After a failed pass some versions are tried alone, with all that the pass knows of them, and those that raise are
excluded for `FOR_S` seconds. Time is an argument (seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pilotlight_autoscaler.observations.scaling_memories import UNKNOWN
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.version_speed import speed_of
from pilotlight_autoscaler.passes.version_views import VersionViews, ask_of, function_of
from pilotlight_autoscaler.policy.desired import desired, more_needs
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.scaling_policy import to_drain
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.search.place import place

FOR_S = 60.0
TRIED_AT_ONCE = 128
"""Versions that are tried after one failed pass: they take a millisecond each, in which nothing else is done."""
MOST = 1_000
"""Versions that are excluded at a time; of more the one whose time is over first is tried again."""


@dataclass(frozen=True, kw_only=True)
class VersionFacts:
    """What a pass knows of a version beside the world."""

    deployed: Collection[str]
    curves_of: Callable[[VersionRecord], Curves | None]
    bounds_of: Callable[[VersionRecord], Mapping[str, ScaleBounds]]
    """What the version is held to, by its id, if that is not its spec."""


@dataclass(kw_only=True)
class Quarantine:
    _until: dict[str, float] = field(default_factory=dict)
    """version -> the end of its quarantine; the one that ends first is first."""
    _tried: int = 0
    """Versions that were tried since one was found, or since all were."""

    @property
    def is_in_vain(self) -> bool:
        """Whether all versions were tried after the last failures, and none raises."""
        return self._tried < 0

    def without(self, versions: dict[str, VersionRecord], at: float) -> dict[str, VersionRecord]:
        """The versions that are not in quarantine."""
        self._until = {name: until for name, until in self._until.items() if until > at}
        return {name: record for name, record in versions.items() if name not in self._until}

    def find_faults(
        self, world: World, versions: Mapping[str, VersionRecord], known: VersionFacts, *, at: float, wall: float
    ) -> dict[str, Exception]:
        """Try some of the versions, the next ones after each failed pass; put those into quarantine that raise.

        What they raise, by version.
        """
        found: dict[str, Exception] = {}
        first = max(0, self._tried)
        for name in list(versions)[first : first + TRIED_AT_ONCE]:
            try:
                _try(world, versions[name], known, at, wall)
            except Exception as error:  # noqa: BLE001 - any exception concerns this version alone
                found[name] = error
                self._until.pop(name, None)
                self._until[name] = at + FOR_S
        while len(self._until) > MOST:
            del self._until[next(iter(self._until))]
        is_round_over = first + TRIED_AT_ONCE >= len(versions)
        self._tried = 0 if found else -1 if is_round_over else first + TRIED_AT_ONCE
        return found


def _try(world: World, record: VersionRecord, known: VersionFacts, at: float, wall: float) -> None:
    """Do with a version what a pass does with it, as far as nothing is changed by it."""
    fleet, curves = world.fleet(at), known.curves_of(record)
    views = VersionViews(
        world,
        {record.id: record},
        known.deployed,
        at,
        lambda _, containers: speed_of(record, curves, containers, fleet),
        bounds=known.bounds_of(record),
    )
    function = function_of(record)
    view = FunctionView(name=function, versions=views)
    wish = desired(view, world.scaling.get(function) or UNKNOWN, wall)
    more_needs(view, wish)
    to_drain(views[record.id], wish.by_version[record.id])
    place(fleet, ask_of(record, curves))
