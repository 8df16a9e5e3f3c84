"""The versions that passes decide on: those that are called, run, start, or have a floor. All others cost nothing.

A pass over all does not look at each of them: what has changed is decided at once, all else once a second, and what
has no place when that may have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

from msgspec import UNSET

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.settled_versions import SettledVersions
from pilotlight_autoscaler.passes.version_views import coming, function_of
from pilotlight_autoscaler.policy.missing_starts import in_turn
from pilotlight_core.model.spec import VersionRecord, network_of
from pilotlight_placement.asks.curves import Curves

TURNS = 4
"""Passes over all in which each version has its turn: a second."""
DECIDED_AT_ONCE = 24
"""Versions on which one pass over all decides, beside those that it has to: tens of milliseconds without a place."""


@dataclass(kw_only=True)
class ActiveVersions:
    """What is known of them, from one pass to the next."""

    records: dict[str, VersionRecord] = field(default_factory=dict)
    versions_of: dict[str, dict[str, None]] = field(default_factory=dict)
    """By function."""
    _functions: dict[str, str] = field(default_factory=dict)
    """By version."""
    deployed: set[str] = field(default_factory=set)
    shut_down: dict[str, str] = field(default_factory=dict)
    """Those of which nothing should run, and why."""
    curves: dict[str, Curves] = field(default_factory=dict)
    _warm: set[str] = field(default_factory=set)
    """Those with warm windows."""
    networked: set[str] = field(default_factory=set)
    """Those that are let out to somewhere."""
    _turns: dict[int, dict[str, None]] = field(default_factory=dict)
    """By turn, whose it is."""
    settled: SettledVersions = field(default_factory=SettledVersions)
    put_off: dict[str, None] = field(default_factory=dict)
    """Those for which the last pass over all had no time, in the order in which they have waited."""
    _renewed: set[str] = field(default_factory=set)
    _turn: int = 0

    def keep(self, ids: Set[str]) -> None:
        """Forget all other versions."""
        for version in self.records.keys() - ids:
            self._drop(version)
        for version in self.shut_down.keys() - ids:
            del self.shut_down[version]

    def functions(self, versions: Iterable[str]) -> set[str]:
        """The functions of those of the versions that are known."""
        known = self._functions
        return {known[version] for version in versions if version in known}

    def unread(self, ids: Set[str]) -> Set[str]:
        """Those of the versions of which nothing is known."""
        return ids - self.records.keys()

    def take_turn(self, world: World) -> list[str]:
        """Those of which it is to be seen now whether they are settled."""
        self._turn = (self._turn + 1) % TURNS
        refused = world.refusals.versions()
        turn = self._turns.get(self._turn, {}).keys() - refused
        return list(turn | (world.waiting - refused))

    def choose(self, world: World, unsettled: Set[str], *, at: float, room: bool) -> set[str]:
        """The versions to decide on now; `room`: moves will be considered for those that have no place."""
        refused = world.refusals.versions()
        chosen = {*unsettled, *world.changed, *world.index.changed}
        for function in world.scaling.take_stirred():
            chosen.update(self.versions_of.get(function, ()))
        chosen.update(bind.version for bind in coming(world))
        ended = world.changed - world.waiting
        due = world.refusals.due(at, room=room, tenant_of=self._tenant_of, first=set(world.reclaimed_free()))
        new = ended | world.index.changed
        chosen = {version for version in chosen if version not in refused or version in new}
        chosen.update(due)
        kept = world.reservation
        if kept is not None and not world.refusals.is_fresh(kept.version, at):
            chosen.add(kept.version)
        world.changed.clear()
        world.index.changed.clear()
        return chosen

    def take_first(self, certain: Iterable[str], others: Iterable[str]) -> set[str]:
        """The certain ones and the first of the others, of each tenant one in turn; the rest is put off."""
        ordered = list(in_turn(dict.fromkeys(others), self._tenant_of))
        self.put_off = dict.fromkeys(ordered[DECIDED_AT_ONCE:])
        return {*certain, *ordered[:DECIDED_AT_ONCE]}

    def take(
        self,
        versions: Iterable[str],
        records: Mapping[str, VersionRecord],
        deployed: Collection[str],
        shut_down: Mapping[str, str],
        curves: Mapping[str, Curves],
    ) -> None:
        """What was found of some versions replaces what was known of them."""
        for version in versions:
            record = records.get(version)
            if record is None:
                self._drop(version)
                continue
            if self.records.get(version) is not record:
                self._renewed.add(version)
            if version not in self.records:
                function = self._functions[version] = function_of(record)
                self.versions_of.setdefault(function, {})[version] = None
                self._turns.setdefault(hash(version) % TURNS, {})[version] = None
            self.records[version] = record
            if record.spec.warm is not UNSET:
                self._warm.add(version)
            if network_of(record.spec):
                self.networked.add(version)
            if version in deployed:
                self.deployed.add(version)
            else:
                self.deployed.discard(version)
            if version in curves:
                self.curves[version] = curves[version]
            else:
                self.curves.pop(version, None)
        for version in versions:
            if version in shut_down:
                self.shut_down[version] = shut_down[version]
            else:
                self.shut_down.pop(version, None)

    def bounded(self, said: Set[str]) -> list[VersionRecord]:
        """Those that may be held to something else than their spec; of the functions `said` people say something."""
        of_these = (version for function in self.versions_of.keys() & said for version in self.versions_of[function])
        return [self.records[version] for version in self._warm.union(of_these)]

    def take_renewed(self) -> set[str]:
        """The versions whose records have come, gone or changed since the last time."""
        renewed, self._renewed = self._renewed, set()
        return renewed

    def _tenant_of(self, version: str) -> str:
        record = self.records.get(version)
        return record.tenant if record is not None else ""

    def _drop(self, version: str) -> None:
        record = self.records.pop(version, None)
        if record is None:
            return
        self._renewed.add(version)
        self.settled.forget(version)
        function = self._functions.pop(version)
        del self.versions_of[function][version]
        if not self.versions_of[function]:
            del self.versions_of[function]
        self.deployed.discard(version)
        self._warm.discard(version)
        self.networked.discard(version)
        self._turns[hash(version) % TURNS].pop(version)
        self.curves.pop(version, None)
