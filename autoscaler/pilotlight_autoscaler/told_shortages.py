"""Which shortages callers have heard of already. Pure: time is an argument (seconds)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from pilotlight_core.model.messages.node_messages import Shortage

AGAIN_S = 2.0
"""An unchanged shortage is repeated so often: who has heard of it believes it for five seconds, and who begins to wait
has to hear of it."""


@dataclass(kw_only=True)
class ToldShortages:
    """A thousand versions without a place are five hundred messages a second, to every gateway, instead of eight times
    as many."""

    _told: dict[str, tuple[Shortage, float]] = field(default_factory=dict)
    """By version."""

    def due(self, shortages: Iterable[Shortage], at: float) -> list[Shortage]:
        """Those to tell now: new ones, and those told a while ago. They count as told."""
        due = [shortage for shortage in shortages if self._is_due(shortage, at)]
        self._told |= {shortage.version: (shortage, at) for shortage in due}
        return due

    def forget(self, at: float) -> None:
        """Drop those that have passed."""
        self._told = {name: (told, since) for name, (told, since) in self._told.items() if at - since <= 2 * AGAIN_S}

    def _is_due(self, shortage: Shortage, at: float) -> bool:
        told, since = self._told.get(shortage.version, (None, at))
        if told is shortage:
            return at - since >= AGAIN_S
        same = told is not None and msgspec.structs.replace(shortage, epoch=told.epoch, room_ms=told.room_ms) == told
        return not same or at - since >= AGAIN_S
