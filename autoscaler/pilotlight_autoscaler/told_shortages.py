"""Which shortages callers have heard of already, and how they are told. Pure: time is an argument (seconds)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

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
    """A thousand versions without a place are told five hundred times a second, in four messages, to every gateway."""

    _told: dict[str, tuple[Shortage, float]] = field(default_factory=dict)
    """By version."""
    _alone_until: float = -math.inf
    _forgot_at: float = field(default=-math.inf, compare=False)

    def note_old_gateway(self, at: float) -> None:
        """A gateway of release 0.1 was heard."""
        self._alone_until = at + OLD_GATEWAYS_S

    def messages(self, shortages: Iterable[Shortage], at: float) -> Sequence[Shortage | Shortages]:
        """What is to be told now of these; it counts as told."""
        due = self.due(shortages, at)
        if at < self._alone_until:
            return due
        starts = range(0, len(due), MOST_TOGETHER)
        return [Shortages(items=tuple(due[first : first + MOST_TOGETHER])) for first in starts]

    def due(self, shortages: Iterable[Shortage], at: float) -> list[Shortage]:
        """Those to tell now: new ones, and those told a while ago. They count as told."""
        due = [shortage for shortage in shortages if self._is_due(shortage, at)]
        self._told |= {shortage.version: (shortage, at) for shortage in due}
        return due

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
