"""The quarantine of versions on which a pass fails, so that decisions on all others go on.

After a failed pass each version is tried alone, and those that raise are excluded for `FOR_S` seconds. Time is an
argument (seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.version_views import VersionViews, ask_of
from pilotlight_autoscaler.policy.desired import desired
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.prediction.function_memory import FunctionMemory
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.search.place import place

FOR_S = 60.0


@dataclass(kw_only=True)
class Quarantine:
    _until: dict[str, float] = field(default_factory=dict)
    """version -> the end of its quarantine."""

    def without(self, versions: dict[str, VersionRecord], at: float) -> dict[str, VersionRecord]:
        """The versions that are not in quarantine."""
        self._until = {name: until for name, until in self._until.items() if until > at}
        return {name: record for name, record in versions.items() if name not in self._until}

    def find_faults(
        self,
        world: World,
        versions: Iterable[VersionRecord],
        curves: Callable[[VersionRecord], Curves | None],
        at: float,
    ) -> dict[str, Exception]:
        """Put the versions that raise into quarantine; they, and their exceptions."""
        found: dict[str, Exception] = {}
        fleet = world.fleet(at)
        for record in versions:
            try:
                seen = VersionViews(world, {record.id: record}, (record.id,), at)
                desired(FunctionView(name=record.id, versions=seen), FunctionMemory(0.0, at), at)
                place(fleet, ask_of(record, curves(record)))
            except Exception as error:  # noqa: BLE001 - any exception concerns this version alone
                found[record.id] = error
                self._until[record.id] = at + FOR_S
        return found
