"""Which shortages callers have heard of already, and how they are told. Pure: time is an argument (seconds)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import msgspec

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import Shortage, Shortages

AGAIN_S = 2.0
"""An unchanged shortage is repeated so often: who has heard of it believes it for five seconds, and who begins to wait
has to hear of it."""
MOST_TOGETHER = 256
"""In one message."""
OLD_GATEWAYS_S = 60.0
"""So long after a gateway of release 0.1 was heard each shortage is told alone, which is all that such ones read."""


@dataclass(kw_only=True)
class ToldShortages:
    """A thousand versions without a place are told five hundred times a second, in four messages, to every gateway.

    Whoever is to hear it again is found by when it was told last: a pass looks at nobody else of them.
    """

    _told: dict[str, tuple[Shortage, float]] = field(default_factory=dict)
    """By version, the one that was told longest ago first."""
    _alone_until: float = -math.inf
    _forgot_at: float = field(default=-math.inf, compare=False)

    def note_old_gateway(self, at: float) -> None:
        """A gateway of release 0.1 was heard."""
        self._alone_until = at + OLD_GATEWAYS_S

    def messages(
        self,
        shortages: Iterable[Shortage],
        at: float,
        lasting: Callable[[str], Shortage | None] = lambda _: None,
        changed: Iterable[str] = (),
    ) -> Sequence[Shortage | Shortages]:
        """What is to be told now of these, and again of those told before; it counts as told.

        Args:
            lasting: what a version's callers hear as long as it has no place.
            changed: versions of which that may be something new.
        """
        due = self.due(shortages, at)
        due += self.due([told for version in changed if (told := lasting(version)) is not None], at)
        due += self._again(at, lasting)
        if at < self._alone_until:
            return due
        starts = range(0, len(due), MOST_TOGETHER)
        return [Shortages(items=tuple(due[first : first + MOST_TOGETHER])) for first in starts]

    def due(self, shortages: Iterable[Shortage], at: float) -> list[Shortage]:
        """Those to tell now: new ones, and those told a while ago. They count as told."""
        due = [shortage for shortage in shortages if self._is_due(shortage, at)]
        for shortage in due:
            self._note(shortage, at)
        return due

    def _again(self, at: float, lasting: Callable[[str], Shortage | None]) -> list[Shortage]:
        """Those told a while ago that last. What has passed is forgotten."""
        found = []
        for version, _ in list(takewhile(lambda told: at - told[1][1] >= AGAIN_S, self._told.items())):
            shortage = lasting(version)
            if shortage is None:
                del self._told[version]
            else:
                self._note(shortage, at)
                found.append(shortage)
        return found

    def _note(self, shortage: Shortage, at: float) -> None:
        self._told.pop(shortage.version, None)
        self._told[shortage.version] = (shortage, at)

    def forget(self, at: float) -> None:
        """Drop those that have passed, from time to time."""
        if 0.0 <= at - self._forgot_at < AGAIN_S:
            return
        self._forgot_at = at
        self._told = {name: (told, since) for name, (told, since) in self._told.items() if at - since <= 2 * AGAIN_S}

    def _is_due(self, shortage: Shortage, at: float) -> bool:
        told, since = self._told.get(shortage.version, (None, at))
        if told is shortage:
            return at - since >= AGAIN_S
        same = told is not None and msgspec.structs.replace(shortage, epoch=told.epoch, room_ms=told.room_ms) == told
        return not same or at - since >= AGAIN_S


def subject_of_told(told: Shortage | Shortages, region: str) -> str:
    return subjects.shortages(region) if isinstance(told, Shortages) else subjects.shortage(region, told.version)


def lasting_shortage(world: World, wall: float, is_settled: bool, version: str) -> Shortage | None:
    """What the callers of a version hear again at the unix second `wall`; None: it is not without a place.

    Before all nodes have reported nobody can say that there will never be one.
    """
    known = world.refusals.shortage(version)
    return None if known is None or (known.never and not is_settled) else world.hopes.with_hope(known, wall)
