"""What a pass needs to know of versions: which it decides on, and what the registry says of them.

`ActiveVersions` has what is known from one pass to the next; what lacks is read from the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from pilotlight_autoscaler.active_versions import ActiveVersions
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.pass_input import PassInput, PassOptions
from pilotlight_autoscaler.passes.quarantine import Quarantine, VersionFacts
from pilotlight_autoscaler.passes.version_views import coming
from pilotlight_autoscaler.registered_versions import RegisteredVersions
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curve_book import CurveBook


@dataclass(frozen=True, kw_only=True)
class DueVersions:
    """The versions of a pass over all."""

    certain: Collection[str]
    """Those that it decides on in any case."""
    others: Collection[str]
    """Those that it looks at first: of most of them nothing is to change."""


@dataclass(kw_only=True)
class PassPreparation:
    world: World
    registered: RegisteredVersions
    book: CurveBook
    new_id: Callable[[VersionRecord], str]
    stop_grace_s: float
    unfunded: Callable[[VersionRecord], str] = lambda _: ""
    """The budget of a version's owner that is used up, in words."""
    quarantine: Quarantine = field(default_factory=Quarantine)
    active: ActiveVersions = field(default_factory=ActiveVersions)
    _read_last: dict[str, VersionRecord] = field(default_factory=dict)
    """What the last pass has read."""

    async def due(self, at: float, *, room: bool) -> DueVersions:
        """The versions of a pass over all; `room`: it considers moves."""
        world, active = self.world, self.active
        ids = self._keep_active(at)
        chosen = active.choose(world, at=at, room=room) & ids
        unread = active.unread(ids)
        await self._read(chosen | unread, at)
        certain = (chosen & world.refusals.versions()) | unread
        if world.reservation is not None:
            certain.add(world.reservation.version)
        return DueVersions(certain=certain, others=chosen - certain)

    async def read(self, versions: Collection[str], at: float) -> None:
        """Read what is not known, and anew what is to be decided on at once."""
        ids = self._keep_active(at) | set(versions)
        await self._read(self.active.unread(ids) | set(versions), at)

    def given(self, decided: Collection[str], options: PassOptions, *, epoch: int, at: float, wall: float) -> PassInput:
        """The input of a pass that decides on these. `at` is on the world's clock, `wall` the same in unix seconds."""
        known, active = self.registered, self.active
        return PassInput(
            versions=active.records, deployed=active.deployed, epoch=epoch, new_id=self.new_id, at=at, wall=wall,
            curves=active.curves, options=options, shut_down=active.shut_down, versions_of=active.versions_of,
            limits_of=known.limits_of, weight_of=known.weight_of, floors=known.floors(), decided=decided,
            stop_grace_s=self.stop_grace_s, bounds=known.bounds(active.records.values()),
            renewed=active.take_renewed(), unfunded=self.unfunded,
        )  # fmt: skip

    def find_faults(self, at: float, wall: float) -> dict[str, Exception]:
        """Put versions into quarantine on which passes fail, first those that the last one has read."""
        known = VersionFacts(
            deployed=self.active.deployed, curves_of=self.book.of, bounds_of=lambda one: self.registered.bounds([one])
        )
        versions = {**self._read_last, **self.active.records}
        return self.quarantine.find_faults(self.world, versions, known, at=at, wall=wall)

    def _keep_active(self, at: float) -> set[str]:
        """The versions that are called, run, start, or have a floor. Nothing is kept of all others."""
        world, active, known = self.world, self.active, self.registered
        ids = world.demands.keys() | world.index.versions().keys() | known.with_floors()
        ids.update(bind.version for bind in coming(world))
        # A version that was just deployed takes over what its function has, before anybody calls it.
        ids |= known.current_of(active.functions(ids).union(world.foreseen(at)), known=active.records.keys())
        active.keep(ids)
        world.refusals.keep(ids)
        self._note_changes()
        return ids

    def _note_changes(self) -> None:
        """What people have changed in the registry since the last pass is decided on at once."""
        changed, are_limits = self.registered.take_changed()
        for version in changed:
            self.world.refusals.forget(version)
        self.world.changed |= changed & self.active.records.keys()
        if are_limits:
            self.world.refusals.open_all()

    async def _read(self, versions: Collection[str], at: float) -> None:
        known = self.registered
        self._read_last = records = await known.read(versions)
        shut_down = await known.shut_down(versions, records)
        records = self.quarantine.without(records, at)
        self.active.take(versions, records, known.deployed(versions), shut_down, self.book.of_all(records))
