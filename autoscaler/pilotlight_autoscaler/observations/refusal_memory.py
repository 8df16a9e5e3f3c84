"""Versions that had no place: they are not decided on again until what they could use is freed, or some seconds pass.

A tenant with a thousand functions without a place must not cost a thousand searches in each pass, nor a walk over all:
who may have a place now is kept apart, by kind, and found out for all at once that the same devices could serve.
Many of them ask for the same but for what they need of the host: if the one that needs least has no place, none of them
has. Time is an argument (seconds).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, field, replace
from itertools import islice

from pilotlight_autoscaler.policy.missing_starts import in_turn
from pilotlight_core.model.messages.node_messages import Shortage
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet

AGAIN_S = 5.0
"""After so long a version is looked at again although nothing was freed: its calls have waited for longer. Twice as
long after each further time."""
LONGEST_AGAIN_S = 60.0
ROOM_AGAIN_S = 10.0
"""After so long room is looked for again by moves."""
GroupsOf = Callable[[str], frozenset[DeviceGroup]]
"""The devices that could serve a version."""
REVISED_AT_ONCE = 12
"""Versions of which one pass looks whether they have a place now."""
LEAST_IN_TIME = 3
"""Of them, those that were refused longest ago, of which nothing is new, however many others are due."""
IN_TIME_EVERY_S = 1.0
"""Such ones are looked at together, so that there are passes without any: much of what a look costs is the same for all
of a pass. Twice as long after each look that has found nothing."""
LONGEST_IN_TIME_S = 4.0


NOTHING_ASKED = (0, 0)
_Open = tuple[tuple[int, int], int, str]
"""What it needs of the host, its number, and a version: of a kind the first one is looked at first."""


class RefusedKind:
    """Versions without a place that ask for the same, but for what they need of the host. It is changed in place."""

    __slots__ = ("ask", "at_once", "open", "versions")

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.versions: dict[str, None] = {}
        self.open: list[_Open] = []
        """Those of which something is new, in the order of what they need."""
        self.at_once = 1
        """How many are looked at together when something was freed: twice as many after each pass in which one of them
        has started, and one after a pass that refused one."""


@dataclass(kw_only=True, slots=True)
class RememberedRefusal:
    shortage: Shortage | None = None
    """What its callers were told."""
    groups: frozenset[DeviceGroup] | None = None
    """The devices that could serve it; None: it is not known."""
    since: float
    number: int
    """Rises from one refusal to the next."""
    room_sought_at: float | None = None
    """When moves were last considered for it."""
    tenant: str = ""
    """Whose limit allows no more; "": it is for want of a place."""
    is_open: bool = False
    """Whether something was freed that it could use."""
    again_s: float = AGAIN_S
    """How long it is not looked at while nothing is."""
    kind: RefusedKind | None = None
    """None: it is like no other."""
    needs: tuple[int, int] = NOTHING_ASKED
    """Memory and cores of the host."""
    ask: Ask | None = None
    """What it asked for; None: no place was sought."""
    missing: int = 1
    """How many of its containers have no place."""

    def is_within(self, other: RememberedRefusal) -> bool:
        """Whether it needs no more of the host than another one of its kind."""
        return self.needs[0] <= other.needs[0] and self.needs[1] <= other.needs[1]


@dataclass(kw_only=True)
class RefusalMemory:
    _refused: dict[str, RememberedRefusal] = field(default_factory=dict)
    """By version; the one that was refused longest ago is first."""
    _kinds: dict[Ask, RefusedKind] = field(default_factory=dict)
    _open_alone: dict[str, None] = field(default_factory=dict)
    """Versions that are like no other, and of which something is new."""
    _unfiled: dict[str, None] = field(default_factory=dict)
    """Versions of which it is not known which devices could serve them."""
    _closed: dict[frozenset[DeviceGroup], dict[str, None]] = field(default_factory=dict)
    """The others of which nothing is new, by the devices that could serve them."""
    _limited: dict[str, dict[str, None]] = field(default_factory=dict)
    """By tenant, the versions of which its limit allows no more."""
    _count: int = 0
    """Of refusals."""
    _in_time_at: float = -math.inf
    """When some were last looked at of which nothing was new."""
    _in_time_every_s: float = IN_TIME_EVERY_S
    _revision: int = -1
    """Of the fleet, as far as its changes are known here."""

    def __len__(self) -> int:
        return len(self._refused)

    def __contains__(self, version: str) -> bool:
        return version in self._refused

    def versions(self) -> Set[str]:
        return self._refused.keys()

    def keep(self, versions: Collection[str]) -> None:
        """Forget all others: nobody decides on them."""
        for version in self._refused.keys() - versions:
            self._pop(version)

    def forget(self, version: str) -> None:
        """Its app has changed: it is decided on like any other."""
        self._pop(version)

    def open_all(self) -> None:
        """Limits have changed: each of them may have a place now."""
        self._open(list(self._refused))
        self._in_time_every_s = IN_TIME_EVERY_S

    def note(self, versions: Iterable[str], at: float, *, room: bool, ask: Ask | None = None) -> None:
        """A pass found no place for versions, which ask for this; `room`: it considered moves too."""
        shape = kind_of(ask) if ask is not None else None
        needs = (ask.memory, ask.cpu) if ask is not None else NOTHING_ASKED
        kind: RefusedKind | None = None
        for version, missing in Counter(versions).items():
            before = self._pop(version)
            if before is None:
                self._in_time_every_s = IN_TIME_EVERY_S
            if shape is not None:
                kind = self._kinds.get(shape)
                if kind is None:
                    kind = self._kinds[shape] = RefusedKind(shape)
                kind.versions[version] = None
            sought_at = at if room else before.room_sought_at if before is not None else None
            self._file(
                version,
                RememberedRefusal(
                    since=at, number=self._count, room_sought_at=sought_at, again_s=_again_s(before), kind=kind,
                    needs=needs, ask=ask, missing=missing,
                ),
            )  # fmt: skip
        if kind is not None:
            kind.at_once = 1

    def note_alike(self, version: str, at: float, *, room: bool) -> None:
        """What was found of a version holds for those of its kind that need as much: they were looked at too.

        Call it of one that may have all that any of them may have.
        """
        one = self._refused[version]
        if one.kind is None:
            return
        for name in one.kind.versions:
            other = self._refused[name]
            if other is not one and one.is_within(other):
                other.again_s, other.since = _again_s(other), at
                other.room_sought_at = at if room else other.room_sought_at
                if other.is_open:
                    other.is_open = False
                    self._file_closed(name, other)
        one.kind.open = [each for each in one.kind.open if self._refused[each[2]].is_open]

    def note_limit(self, version: str, tenant: str, at: float) -> None:
        """A tenant's limit allows no more containers of a version."""
        again_s = _again_s(self._pop(version))
        self._limited.setdefault(tenant, {})[version] = None
        self._file(
            version,
            RememberedRefusal(
                since=at, number=self._count, room_sought_at=at, groups=frozenset(), tenant=tenant, again_s=again_s
            ),
        )

    def is_fresh(self, version: str, at: float) -> bool:
        """Whether it was refused a moment ago, and nothing was freed since that it could use."""
        one = self._refused.get(version)
        return one is not None and not one.is_open and 0.0 <= at - one.since < self._in_time_every_s

    def is_room_due(self, versions: Iterable[str], at: float) -> bool:
        """Whether room by moves is to be looked for again for one of these."""
        return any(_is_room_due(one, at) for one in map(self._refused.get, versions))

    def settle(self, decided: Iterable[str], at: float, started: Collection[str] = ()) -> None:
        """Forget those of the versions that were decided on at `at` and not refused.

        Where one of them is `started`, others of its kind may have a place too.
        """
        grown: dict[Ask, RefusedKind] = {}
        for version in [version for version in dict.fromkeys(decided) if version in self._refused]:
            one = self._refused[version]
            if one.since >= at:
                continue
            self._pop(version)
            self._in_time_every_s = IN_TIME_EVERY_S
            if version in started and one.kind is not None:
                grown[one.kind.ask] = one.kind
        for kind in grown.values():
            self._open(list(kind.versions))
            kind.at_once = min(REVISED_AT_ONCE, 2 * kind.at_once)

    def set_shortage(self, shortage: Shortage) -> None:
        """This is what the callers of a version that has no place hear."""
        if (known := self._refused.get(shortage.version)) is not None:
            known.shortage = shortage

    def shortage(self, version: str) -> Shortage | None:
        """What the callers of a version were told; None: it is not without a place, or they were told nothing."""
        one = self._refused.get(version)
        return one.shortage if one is not None else None

    def unplaced(self, tenant_of: Callable[[str], str]) -> list[tuple[str, Ask, int]]:
        """The versions without a place, of each tenant one in turn, what they ask for, and for how many containers."""
        found = []
        for version in in_turn(self._refused, tenant_of):
            one = self._refused[version]
            if one.ask is not None:
                found.append((version, one.ask, one.missing))
        return found

    def refresh(self, fleet: Fleet, freed: Iterable[str], tenants: Collection[str], groups_of: GroupsOf) -> None:
        """Note what has become free since the last time.

        `freed` are containers that may make room now, `tenants` those whose containers have changed.
        """
        ops = fleet.journal.since(self._revision, fleet.revision) if self._revision >= 0 else []
        self._revision = fleet.revision
        if not self._refused:
            return
        for version in self._unfiled:
            one = self._refused[version]
            one.groups = groups_of(version)
            if not one.is_open:
                self._file_closed(version, one)
        self._unfiled.clear()
        nodes = {held.slice.node for name in freed if (held := fleet.held.get(name)) is not None}
        nodes |= {op.held.slice.node for op in ops or () if op.held is not None and not op.taken}
        nodes |= {op.after.name for op in ops or () if op.after is not None}
        changed = {group for name in nodes if name in fleet.places for group in fleet.places[name].by_group}
        touched = [groups for groups in self._closed if ops is None or not groups.isdisjoint(changed)]
        self._open([version for groups in touched for version in self._closed[groups]])
        for tenant in self._limited.keys() & tenants:
            self._open(list(self._limited[tenant]))

    def due(
        self, at: float, *, room: bool, tenant_of: Callable[[str], str] = str, first: Collection[str] = ()
    ) -> list[str]:
        """Those to decide on now, at most `REVISED_AT_ONCE`; `room`: moves will be considered.

        First those of the tenants `first`, then those for which something was freed, then the one that was refused
        longest ago, of which some have a turn in any case; one of each tenant in turn, so that a tenant with a thousand
        of them delays nobody else's. Of one kind the one that needs least is the first, and the only one unless others
        of it have just started.
        """
        firsts = [version for version in self._refused if tenant_of(version) in first] if first else []
        opened = list(dict.fromkeys((*self._opened(1), *self._opened(REVISED_AT_ONCE))))
        others: list[str] = []
        if not 0.0 <= at - self._in_time_at < self._in_time_every_s:
            others = [v for v, one in self._refused.items() if not one.is_open and _is_due(one, at, room=room)]
        in_time = list(islice(in_turn(self._least(others), tenant_of), LEAST_IN_TIME))
        if in_time:
            self._in_time_at, self._in_time_every_s = at, min(LONGEST_IN_TIME_S, 2.0 * self._in_time_every_s)
        turns = (*in_turn(firsts, tenant_of), *islice(in_turn(opened, tenant_of), REVISED_AT_ONCE))
        kept = max(REVISED_AT_ONCE - len(in_time), REVISED_AT_ONCE - LEAST_IN_TIME)
        return list(islice(dict.fromkeys((*turns[:kept], *in_time, *turns[kept:])), REVISED_AT_ONCE))

    def _opened(self, most: int) -> list[str]:
        """Of which something is new: those that are like no other, and of each kind those that need least, no more than
        `most` and than may be looked at together.
        """
        found = list(self._open_alone)
        for kind in self._kinds.values():
            found += [version for _, _, version in kind.open[: min(most, kind.at_once)]]
        return sorted(found, key=self._since)

    def _least(self, versions: Iterable[str]) -> list[str]:
        """Of each kind the one that needs least of its host, and those that are like no other."""
        found: list[str] = []
        least: dict[int, tuple[_Open, str]] = {}
        for version in versions:
            one = self._refused[version]
            if one.kind is None:
                found.append(version)
                continue
            each: _Open = (one.needs, one.number, version)
            known = least.get(id(one.kind))
            if known is None or each < known[0]:
                least[id(one.kind)] = (each, version)
        found += [version for _, version in least.values()]
        return sorted(found, key=self._since)

    def _since(self, version: str) -> float:
        return self._refused[version].since

    def _open(self, versions: Collection[str]) -> None:
        """Something is new of these."""
        kinds: dict[int, RefusedKind] = {}
        for version in versions:
            one = self._refused[version]
            if one.is_open:
                continue
            self._unfile(version, one)
            one.is_open = True
            if one.groups is None:
                self._unfiled[version] = None
            if one.kind is None:
                self._open_alone[version] = None
            else:
                one.kind.open.append((one.needs, one.number, version))
                kinds[id(one.kind)] = one.kind
        for kind in kinds.values():
            kind.open.sort()

    def _file(self, version: str, one: RememberedRefusal) -> None:
        self._count += 1
        self._refused[version] = one
        if one.groups is None:
            self._unfiled[version] = None
        else:
            self._file_closed(version, one)

    def _file_closed(self, version: str, one: RememberedRefusal) -> None:
        """Nothing is new of it."""
        if one.groups is not None:
            self._closed.setdefault(one.groups, {})[version] = None

    def _unfile(self, version: str, one: RememberedRefusal) -> None:
        self._unfiled.pop(version, None)
        if one.is_open:
            self._open_alone.pop(version, None)
            if one.kind is not None:
                del one.kind.open[bisect_left(one.kind.open, (one.needs, one.number, version))]
        elif one.groups is not None and (closed := self._closed.get(one.groups)) is not None:
            closed.pop(version, None)
            if not closed:
                del self._closed[one.groups]

    def _pop(self, version: str) -> RememberedRefusal | None:
        one = self._refused.pop(version, None)
        if one is None:
            return None
        self._unfile(version, one)
        if one.kind is not None:
            del one.kind.versions[version]
            if not one.kind.versions:
                del self._kinds[one.kind.ask]
        if one.tenant:
            limited = self._limited[one.tenant]
            limited.pop(version, None)
            if not limited:
                del self._limited[one.tenant]
        return one


def kind_of(ask: Ask) -> Ask | None:
    """An ask without its needs of the host, whichever function's; None if its function's other containers matter."""
    return None if ask.spread is not None or ask.avoid else replace(ask, function="", resident=(), memory=0, cpu=0)


def _again_s(before: RememberedRefusal | None) -> float:
    return AGAIN_S if before is None or before.is_open else min(LONGEST_AGAIN_S, 2.0 * before.again_s)


def _is_due(one: RememberedRefusal, at: float, *, room: bool) -> bool:
    if at - one.since >= one.again_s:
        return True
    return room and not one.tenant and _is_room_due(one, at)


def _is_room_due(one: RememberedRefusal | None, at: float) -> bool:
    return one is None or one.room_sought_at is None or at - one.room_sought_at >= ROOM_AGAIN_S
