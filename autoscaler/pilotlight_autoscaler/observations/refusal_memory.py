"""Versions that had no place: they are not decided on again until what they could use is freed, or some seconds pass.

A tenant with a thousand functions without a place must not cost a thousand searches in each pass. Many of them ask for
the same but for what they need of the host: if the one that needs least has no place, none of them has. Time is an
argument (seconds).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import islice, zip_longest

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


@dataclass(kw_only=True)
class RememberedRefusal:
    shortage: Shortage | None = None
    """What its callers were told."""
    groups: frozenset[DeviceGroup] | None = None
    """The devices that could serve it; None: it is not known."""
    since: float
    room_sought_at: float | None = None
    """When moves were last considered for it."""
    tenant: str = ""
    """Whose limit allows no more; "": it is for want of a place."""
    is_open: bool = False
    """Whether something was freed that it could use."""
    again_s: float = AGAIN_S
    """How long it is not looked at while nothing is."""
    kind: Ask | None = None
    """What it asks for, but for its needs of the host; None: it is like no other."""
    needs: tuple[int, int] = (0, 0)
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
    _by_kind: dict[Ask, dict[str, None]] = field(default_factory=dict)
    """The versions of each kind."""
    _at_once: dict[Ask, int] = field(default_factory=dict)
    """How many of a kind are looked at together when something was freed, if more than one: twice as many after each
    pass in which one of them has started, and one after a pass that refused one."""
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
        for one in self._refused.values():
            one.is_open = True
        self._in_time_every_s = IN_TIME_EVERY_S

    def note(self, versions: Iterable[str], at: float, *, room: bool, ask: Ask | None = None) -> None:
        """A pass found no place for versions, which ask for this; `room`: it considered moves too."""
        kind = kind_of(ask) if ask is not None else None
        needs = (ask.memory, ask.cpu) if ask is not None else (0, 0)
        for version, missing in Counter(versions).items():
            before = self._pop(version)
            if before is None:
                self._in_time_every_s = IN_TIME_EVERY_S
            sought_at = at if room else before.room_sought_at if before is not None else None
            self._refused[version] = RememberedRefusal(
                since=at, room_sought_at=sought_at, again_s=_again_s(before), kind=kind, needs=needs, ask=ask,
                missing=missing,
            )  # fmt: skip
            if kind is not None:
                self._by_kind.setdefault(kind, {})[version] = None
        if kind is not None:
            self._at_once.pop(kind, None)

    def note_alike(self, version: str, at: float, *, room: bool) -> None:
        """What was found of a version holds for those of its kind that need as much: they were looked at too.

        Call it of one that may have all that any of them may have.
        """
        one = self._refused[version]
        for name in self._by_kind[one.kind] if one.kind is not None else ():
            other = self._refused[name]
            if other is not one and one.is_within(other):
                other.again_s, other.since, other.is_open = _again_s(other), at, False
                other.room_sought_at = at if room else other.room_sought_at

    def note_limit(self, version: str, tenant: str, at: float) -> None:
        """A tenant's limit allows no more containers of a version."""
        again_s = _again_s(self._pop(version))
        self._refused[version] = RememberedRefusal(
            since=at, room_sought_at=at, groups=frozenset(), tenant=tenant, again_s=again_s
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
        grown = set[Ask]()
        for version in self._refused.keys() & decided:
            one = self._refused[version]
            if one.since >= at:
                continue
            self._pop(version)
            self._in_time_every_s = IN_TIME_EVERY_S
            if version in started and one.kind is not None:
                grown.add(one.kind)
                for other in self._by_kind.get(one.kind, ()):
                    self._refused[other].is_open = True
        for kind in grown & self._by_kind.keys():
            self._at_once[kind] = min(REVISED_AT_ONCE, 2 * self._at_once.get(kind, 1))

    def set_shortage(self, shortage: Shortage) -> None:
        """This is what the callers of a version that has no place hear."""
        if (known := self._refused.get(shortage.version)) is not None:
            known.shortage = shortage

    def unplaced(self, tenant_of: Callable[[str], str]) -> list[tuple[str, Ask, int]]:
        """The versions without a place, of each tenant one in turn, what they ask for, and for how many containers."""
        found = []
        for version in tenants_in_turn(self._refused, tenant_of):
            one = self._refused[version]
            if one.ask is not None:
                found.append((version, one.ask, one.missing))
        return found

    def shortages(self, but: Iterable[str]) -> list[Shortage]:
        """What the callers of all others were told."""
        others = set(but)
        return [one.shortage for version, one in self._refused.items() if one.shortage and version not in others]

    def refresh(self, fleet: Fleet, freed: Iterable[str], tenants: Collection[str], groups_of: GroupsOf) -> None:
        """Note what has become free since the last time.

        `freed` are containers that may make room now, `tenants` those whose containers have changed.
        """
        ops = fleet.journal.since(self._revision, fleet.revision) if self._revision >= 0 else []
        self._revision = fleet.revision
        if not self._refused:
            return
        nodes = {held.slice.node for name in freed if (held := fleet.held.get(name)) is not None}
        nodes |= {op.held.slice.node for op in ops or () if op.held is not None and not op.taken}
        nodes |= {op.after.name for op in ops or () if op.after is not None}
        changed = {group for name in nodes if name in fleet.places for group in fleet.places[name].by_group}
        touched: dict[frozenset[DeviceGroup], bool] = {}
        for version, one in self._refused.items():
            if one.groups is None:
                one.groups = groups_of(version)
            if one.groups not in touched:
                touched[one.groups] = ops is None or not one.groups.isdisjoint(changed)
            one.is_open |= touched[one.groups] or one.tenant in tenants

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
        opened = [version for version, one in self._refused.items() if one.is_open]
        opened = list(dict.fromkeys((*self._least(opened), *self._some(opened))))
        others: list[str] = []
        if not 0.0 <= at - self._in_time_at < self._in_time_every_s:
            others = [v for v, one in self._refused.items() if not one.is_open and _is_due(one, at, room=room)]
        in_time = list(islice(tenants_in_turn(self._least(others), tenant_of), LEAST_IN_TIME))
        if in_time:
            self._in_time_at, self._in_time_every_s = at, min(LONGEST_IN_TIME_S, 2.0 * self._in_time_every_s)
        turns = (*tenants_in_turn(firsts, tenant_of), *islice(tenants_in_turn(opened, tenant_of), REVISED_AT_ONCE))
        kept = max(REVISED_AT_ONCE - len(in_time), REVISED_AT_ONCE - LEAST_IN_TIME)
        return list(islice(dict.fromkeys((*turns[:kept], *in_time, *turns[kept:])), REVISED_AT_ONCE))

    def _least(self, versions: Collection[str]) -> list[str]:
        """Of each kind the one that needs least of its host, and those that are like no other."""
        some, known = set(versions), self._refused
        found = [version for version in versions if known[version].kind is None]
        due = ([version for version in alike if version in some] for alike in self._by_kind.values())
        found += [min(alike, key=lambda version: known[version].needs) for alike in due if alike]
        return sorted(found, key=lambda version: known[version].since)

    def _some(self, versions: Iterable[str]) -> list[str]:
        """Those that are like no other, and of each kind as many as may be looked at together, by what they need."""
        known, by_kind, found = self._refused, dict[Ask, list[str]](), list[str]()
        for version in versions:
            kind = known[version].kind
            (by_kind.setdefault(kind, []) if kind is not None else found).append(version)
        for kind, alike in by_kind.items():
            found += nsmallest(self._at_once.get(kind, 1), alike, key=lambda version: known[version].needs)
        return sorted(found, key=lambda version: known[version].since)

    def _pop(self, version: str) -> RememberedRefusal | None:
        one = self._refused.pop(version, None)
        if one is not None and one.kind is not None:
            del self._by_kind[one.kind][version]
            if not self._by_kind[one.kind]:
                del self._by_kind[one.kind]
                self._at_once.pop(one.kind, None)
        return one


def kind_of(ask: Ask) -> Ask | None:
    """An ask without its needs of the host, whichever function's; None if its function's other containers matter."""
    return None if ask.spread is not None or ask.avoid else replace(ask, function="", resident=(), memory=0, cpu=0)


def tenants_in_turn(versions: Iterable[str], tenant_of: Callable[[str], str]) -> Iterator[str]:
    """The versions in their order, of each tenant one in turn."""
    by_tenant: dict[str, list[str]] = {}
    for version in versions:
        by_tenant.setdefault(tenant_of(version), []).append(version)
    return (version for turn in zip_longest(*by_tenant.values()) for version in turn if version is not None)


def _again_s(before: RememberedRefusal | None) -> float:
    return AGAIN_S if before is None or before.is_open else min(LONGEST_AGAIN_S, 2.0 * before.again_s)


def _is_due(one: RememberedRefusal, at: float, *, room: bool) -> bool:
    if at - one.since >= one.again_s:
        return True
    return room and not one.tenant and _is_room_due(one, at)


def _is_room_due(one: RememberedRefusal | None, at: float) -> bool:
    return one is None or one.room_sought_at is None or at - one.room_sought_at >= ROOM_AGAIN_S
