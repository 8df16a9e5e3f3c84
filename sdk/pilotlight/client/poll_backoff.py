"""Spaces the requests of one map after a refusal.

A refusal delays all requests by its Retry-After. From then on requests have a gap, which doubles with each further
round of refusals and shrinks with each request: the map finds the rate of a limit within a fifth.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

SMALLEST_GAP_S = 0.005
LARGEST_GAP_S = 1.0
GROWTH = 2.0
DECAY = 0.8


class PollBackoff:
    """The gap between the requests of one map. Instants are monotonic seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._queue = asyncio.Lock()
        self._opens_at = 0.0
        self._gap_s = 0.0
        self._grew_at = 0.0

    async def wait_turn(self) -> float:
        """Wait until the next request may be sent; return that instant."""
        async with self._queue:
            while (left := self._opens_at - self._clock()) > 0:  # it may move on meanwhile
                await self._sleep(left)
            at = self._clock()
            self._opens_at = at + self._gap_s
            self._gap_s = self._gap_s * DECAY if self._gap_s > SMALLEST_GAP_S else 0.0
            return at

    def note_refusal(self, sent_at: float, wait_s: float) -> None:
        """Delay requests by `wait_s` after the refusal of one that was sent at `sent_at`."""
        at = self._clock()
        self._opens_at = max(self._opens_at, at + wait_s)
        if sent_at >= self._grew_at:  # requests sent before the last refusal was heard belong to its round
            self._gap_s = min(LARGEST_GAP_S, max(2 * SMALLEST_GAP_S, self._gap_s * GROWTH))
            self._grew_at = at
