"""Versions that had no place: they are not decided on again until what they could use is freed, or some seconds pass.

A tenant with a thousand functions without a place must not cost a thousand searches in each pass. Time is an argument
(seconds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from pilotlight_core.model.messages.node_messages import Shortage
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
IN_TIME_EVERY_S = 0.5
"""Such ones are looked at together, so that there are passes without any: much of what a look costs is the same for all
of a pass."""


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


@dataclass(kw_only=True)
class RefusalMemory:
    _refused: dict[str, RememberedRefusal] = field(default_factory=dict)
    """By version; the one that was refused longest ago is first."""
    _in_time_at: float = -math.inf
    """When some were last looked at of which nothing was new."""
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
            del self._refused[version]

    def forget(self, version: str) -> None:
        """Its app has changed: it is decided on like any other."""
        self._refused.pop(version, None)

    def open_all(self) -> None:
        """Limits have changed: each of them may have a place now."""
        for one in self._refused.values():
            one.is_open = True

    def note(self, versions: Iterable[str], at: float, *, room: bool) -> None:
        """A pass found no place for versions; `room`: it considered moves too."""
        for version in dict.fromkeys(versions):
            before = self._refused.pop(version, None)
            sought_at = at if room else before.room_sought_at if before is not None else None
            self._refused[version] = RememberedRefusal(since=at, room_sought_at=sought_at, again_s=_again_s(before))

    def note_limit(self, version: str, tenant: str, at: float) -> None:
        """A tenant's limit allows no more containers of a version."""
        again_s = _again_s(self._refused.pop(version, None))
        self._refused[version] = RememberedRefusal(
            since=at, room_sought_at=at, groups=frozenset(), tenant=tenant, again_s=again_s
        )

    def settle(self, decided: Iterable[str], at: float) -> None:
        """Forget those of the versions that were decided on at `at` and not refused."""
        for version in self._refused.keys() & decided:
            if self._refused[version].since < at:
                del self._refused[version]

    def set_shortage(self, shortage: Shortage) -> None:
        """This is what the callers of a version that has no place hear."""
        if (known := self._refused.get(shortage.version)) is not None:
            known.shortage = shortage

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
        for version, one in self._refused.items():
            if one.groups is None:
                one.groups = groups_of(version)
            one.is_open |= ops is None or one.tenant in tenants or not one.groups.isdisjoint(changed)

    def due(
        self, at: float, *, room: bool, tenant_of: Callable[[str], str] = str, first: Collection[str] = ()
    ) -> list[str]:
        """Those to decide on now, at most `REVISED_AT_ONCE`; `room`: moves will be considered.

        First those of the tenants `first`, then those for which something was freed, then the one that was refused
        longest ago, of which some have a turn in any case; one of each tenant in turn, so that a tenant with a thousand
        of them delays nobody else's.
        """
        firsts = [version for version in self._refused if tenant_of(version) in first] if first else []
        opened = [version for version, one in self._refused.items() if one.is_open]
        others: list[str] = []
        if not 0.0 <= at - self._in_time_at < IN_TIME_EVERY_S:
            others = [v for v, one in self._refused.items() if not one.is_open and _is_due(one, at, room=room)]
        in_time = list(islice(_round_robin(others, tenant_of), LEAST_IN_TIME))
        if in_time:
            self._in_time_at = at
        turns = (*_round_robin(firsts, tenant_of), *islice(_round_robin(opened, tenant_of), REVISED_AT_ONCE))
        kept = max(REVISED_AT_ONCE - len(in_time), REVISED_AT_ONCE - LEAST_IN_TIME)
        return list(islice(dict.fromkeys((*turns[:kept], *in_time, *turns[kept:])), REVISED_AT_ONCE))


def _round_robin(versions: Iterable[str], tenant_of: Callable[[str], str]) -> Iterator[str]:
    by_tenant: dict[str, list[str]] = {}
    for version in versions:
        by_tenant.setdefault(tenant_of(version), []).append(version)
    return (version for turn in zip_longest(*by_tenant.values()) for version in turn if version is not None)


def _again_s(before: RememberedRefusal | None) -> float:
    return AGAIN_S if before is None or before.is_open else min(LONGEST_AGAIN_S, 2.0 * before.again_s)


def _is_due(one: RememberedRefusal, at: float, *, room: bool) -> bool:
    if at - one.since >= one.again_s:
        return True
    return room and not one.tenant and (one.room_sought_at is None or at - one.room_sought_at >= ROOM_AGAIN_S)
