"""What a pass needs to know of versions: which it decides on, and what the registry says of them.

`ActiveVersions` has what is known from one pass to the next; what lacks is read from the registry.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Set
from dataclasses import dataclass, field

from pilotlight_autoscaler.active_versions import ActiveVersions
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.pass_input import PassInput, PassOptions
from pilotlight_autoscaler.passes.quarantine import Quarantine, VersionFacts
from pilotlight_autoscaler.passes.settled_versions import restless_versions
from pilotlight_autoscaler.passes.version_views import coming
from pilotlight_autoscaler.registered_versions import RegisteredVersions
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curve_book import CurveBook

KEEP_EVERY_S = 1.0
"""What has become active is found at once, what is not any more so often."""
LOOKED_AT_ONCE = 256
"""Between two pauses: about a millisecond."""
READ_AT_ONCE = 64
"""Of versions that are new, between two pauses: some milliseconds."""


@dataclass(frozen=True, kw_only=True)
class DueVersions:
    """The versions of a pass over all. Those that are certain are read anew."""

    certain: Collection[str]
    """Those that it decides on in any case."""
    put_off: Collection[str]
    """Those for which the last one had no time."""
    others: Collection[str]
    """Those that it looks at first: of most of them nothing is to change."""


@dataclass(kw_only=True)
class PassPreparation:
    world: World
    registered: RegisteredVersions
    book: CurveBook
    new_id: Callable[[VersionRecord], str]
    stop_grace_s: float
    pause: Callable[[], Awaitable[None]]
    """Lets others have their turn."""
    unfunded: Callable[[VersionRecord], str] = lambda _: ""
    """The budget of a version's owner that is used up, in words."""
    quarantine: Quarantine = field(default_factory=Quarantine)
    active: ActiveVersions = field(default_factory=ActiveVersions)
    _kept_at: float = -math.inf
    """When it was looked last which versions are active."""
    _read_last: dict[str, VersionRecord] = field(default_factory=dict)
    """What the last pass has read."""

    async def due(self, at: float, *, room: bool) -> DueVersions:
        """The versions of a pass over all; `room`: it considers moves."""
        world, active = self.world, self.active
        turn, restless = active.take_turn(world), restless_versions(world, at)
        unsettled = restless.union(self.registered.over()).intersection(turn)
        for first in range(0, len(turn), LOOKED_AT_ONCE):
            unsettled |= active.settled.unsettled(turn[first : first + LOOKED_AT_ONCE], world, at)
            await self.pause()
        ids = self._keep_active(at)
        chosen = active.choose(world, unsettled, at=at, room=room) & ids
        certain = chosen & world.refusals.versions()
        if (kept := world.reservation) is not None and not world.refusals.is_fresh(kept.version, at):
            certain.add(kept.version)
        await self.read(certain, at)
        new = list(active.unread(ids))
        for first in range(0, len(new), READ_AT_ONCE):
            await self.read(new[first : first + READ_AT_ONCE], at)
            await self.pause()
        put_off = [version for version in active.put_off if version in ids and version not in certain]
        others = chosen.union(new) - certain - active.put_off.keys()
        return DueVersions(certain=certain, put_off=put_off, others=others)

    async def take_first(self, due: DueVersions, found: Iterable[str], at: float) -> Set[str]:
        """What a pass over all decides on: no more than it has time for; the rest is put off to the next one.

        `found` are those of the others of which something is to change.
        """
        first = self.active.take_first(due.certain, [*due.put_off, *found])
        if waited := first.intersection(due.put_off):
            await self.read(waited, at)
        return first

    async def read(self, versions: Collection[str], at: float) -> None:
        """Read versions, anew if they are known, and the deployed ones of their functions if they are not."""
        await self._read(versions, at)
        known = self.active.records
        current = self.registered.current_of(self.active.functions(versions), known=known.keys())
        if unread := [version for version in current if version not in known]:
            await self._read(unread, at)

    def given(self, decided: Collection[str], options: PassOptions, *, epoch: int, at: float, wall: float) -> PassInput:
        """The input of a pass that decides on these. `at` is on the world's clock, `wall` the same in unix seconds."""
        known, active = self.registered, self.active
        return PassInput(
            versions=active.records, deployed=active.deployed, epoch=epoch, new_id=self.new_id, at=at, wall=wall,
            curves=active.curves, options=options, shut_down=active.shut_down, versions_of=active.versions_of,
            limits_of=known.limits_of, terms_of=known.share_terms, floors=known.floors(), decided=decided,
            stop_grace_s=self.stop_grace_s, bounds=known.bounds(active.bounded(known.said)),
            renewed=active.take_renewed(), settled=active.settled, unfunded=self.unfunded,
            network_of=known.network_of, arms=known.arms, networked=active.networked,
        )  # fmt: skip

    def find_faults(self, at: float, wall: float) -> dict[str, Exception]:
        """Put versions into quarantine on which passes fail, first those that the last one has read."""
        known = VersionFacts(
            deployed=self.active.deployed, curves_of=self.book.of, bounds_of=lambda one: self.registered.bounds([one])
        )
        versions = {**self._read_last, **self.active.records}
        faults = self.quarantine.find_faults(self.world, versions, known, at=at, wall=wall)
        self.active.take(faults, {}, (), {}, {})
        return faults

    def _keep_active(self, at: float) -> set[str]:
        """The versions that are called, run, start, or have a floor. Nothing is kept of all others."""
        world, active, known = self.world, self.active, self.registered
        if not self._note_changes() and 0.0 <= at - self._kept_at < KEEP_EVERY_S:
            return active.records.keys() | self._new_ones(at)
        self._kept_at = at
        ids = world.demands.keys() | world.index.versions().keys() | known.with_floors()
        ids.update(bind.version for bind in coming(world))
        # A version that was just deployed takes over what its function has, before anybody calls it.
        functions = active.functions(ids).union(world.foreseen(at))
        ids |= known.current_of(functions, known=active.records.keys())
        # Sides of a rollout have containers before calls need them, and the old one after.
        ids |= known.arms_of(functions)
        active.keep(ids)
        world.refusals.keep(ids)
        return ids

    def _new_ones(self, at: float) -> set[str]:
        """Those of them that were not yet, by what has changed since the last pass."""
        world, known = self.world, self.active.records.keys()
        stirred = (each for each in world.waiting | world.changed | world.index.changed if each not in known)
        new = {each for each in stirred if each in world.demands or each in world.index.versions()}
        new.update(bind.version for bind in coming(world))
        return new | self.registered.current_of(world.foreseen(at), known=known)

    def _note_changes(self) -> bool:
        """What people have changed in the registry since the last pass is decided on at once; whether they have."""
        changed, are_limits = self.registered.take_changed()
        for version in changed:
            self.world.refusals.forget(version)
        self.world.changed |= changed & self.active.records.keys()
        if are_limits:
            self.world.refusals.open_all()
            self.active.settled.clear()
        return bool(changed)

    async def _read(self, versions: Collection[str], at: float) -> None:
        known = self.registered
        self._read_last = records = await known.read(versions)
        shut_down = await known.shut_down(versions, records)
        records = self.quarantine.without(records, at)
        self.active.take(versions, records, known.deployed(versions), shut_down, self.book.of_all(records))
