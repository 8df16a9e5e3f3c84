"""What is kept in a host's memory, and what of it goes for something new. Pure.

What is new takes the place of what is worth less (`warm_worth`), but of nothing that came a moment ago: else two that
are worth about the same would chase each other out. And nobody takes the place of whoever has less: how long a load
takes is for a tenant's own code to say. What does not fit is not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from pilotlight_core.model.scaling.warm_worth import worth

RESIDENT_S = 10.0
"""So long what is kept stays, whatever else is worth more."""


class WarmKind(StrEnum):
    PARKED = "parked"  # a container
    CACHED = "cached"  # weights


@dataclass(frozen=True, kw_only=True)
class WarmThing:
    """Something that is kept. `name` is unique among those of its kind."""

    kind: WarmKind
    name: str
    size: int
    """Bytes."""
    load_s: float
    """How long it takes to have it again."""
    likelihood: float
    """How likely it is needed in the next minute, as of `since`."""
    since: float
    """Monotonic seconds."""
    evict: Callable[[], None]
    """Ends it. It counts no more from then on."""
    tenant: str = ""
    """Whose it is; what is nobody's counts together."""

    def worth(self, at: float) -> float:
        return worth(self.load_s, self.likelihood, self.size, at - self.since)


class WarmThings:
    def __init__(self, total: int) -> None:
        """`total` bytes; 0: nothing is kept."""
        self.total = total
        self._things: dict[tuple[WarmKind, str], WarmThing] = {}

    def taken(self, kind: WarmKind | None = None) -> int:
        """Bytes of one kind, or of all."""
        return sum(thing.size for thing in self._things.values() if kind in (None, thing.kind))

    def get(self, kind: WarmKind, name: str) -> WarmThing | None:
        return self._things.get((kind, name))

    def names(self, kind: WarmKind) -> set[str]:
        """Of all things of a kind."""
        return {name for each, name in self._things if each is kind}

    def take(self, thing: WarmThing) -> bool:
        """Keep something, in place of what is worth less if need be; False: it is not kept, and all else stays."""
        goes = victims(thing, self._things.values(), self.total)
        if goes is None:
            return False
        for victim in goes:
            del self._things[victim.kind, victim.name]
        self._things[thing.kind, thing.name] = thing
        for victim in goes:
            victim.evict()
        return True

    def touch(self, kind: WarmKind, name: str, likelihood: float, at: float) -> None:
        """It was needed, or its chance is another now."""
        if (known := self._things.get((kind, name))) is not None:
            self._things[kind, name] = replace(known, likelihood=likelihood, since=at)

    def release(self, kind: WarmKind, name: str) -> None:
        """It is not there any more; nothing happens if it was not."""
        self._things.pop((kind, name), None)


def victims(new: WarmThing, kept: Iterable[WarmThing], total: int) -> list[WarmThing] | None:
    """What goes for something new: of what is worth less the least first; None: it does not fit even so."""
    others = [thing for thing in kept if (thing.kind, thing.name) != (new.kind, new.name)]
    missing, at = sum(thing.size for thing in others) + new.size - total, new.since
    mine, goes, held = new.worth(at), list[WarmThing](), Counter[str]()
    for thing in (*others, new):
        held[thing.tenant] += thing.size
    for thing in sorted(others, key=lambda thing: (thing.worth(at), thing.since)) if missing > 0 else ():
        if thing.worth(at) >= mine or missing <= 0:
            break
        if at - thing.since < RESIDENT_S or held[thing.tenant] < held[new.tenant]:
            continue
        goes.append(thing)
        held[thing.tenant] -= thing.size
        missing -= thing.size
    return goes if missing <= 0 else None
