"""Versions on which a pass fails: one of them must not stop the decisions on all others.

After a failed pass each version is tried by itself, and those that raise are left out for `FOR_S` seconds. Time is an
argument (seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pilotlight_autoscaler.decide import ask_of, views
from pilotlight_autoscaler.scaling_policy import wanted
from pilotlight_autoscaler.world import World
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.search.place import place

FOR_S = 60.0


@dataclass(kw_only=True)
class Quarantine:
    """The versions, and until when."""

    _until: dict[str, float] = field(default_factory=dict)

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
        """Set aside what cannot be decided on; the versions, and what each of them has raised."""
        found: dict[str, Exception] = {}
        fleet = world.fleet(at)
        for record in versions:
            try:
                wanted(views(world, {record.id: record}, (record.id,), at)[record.id])
                place(fleet, ask_of(record, curves(record)))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this version's alone
                found[record.id] = error
                self._until[record.id] = at + FOR_S
        return found
