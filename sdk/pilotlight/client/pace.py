"""How fast a map submits: as fast as it is taken, and no faster than it is refused.

A refusal closes the gate for as long as it says, for all that wait behind it; from then on there is a gap between two
submissions, which doubles with each further round of refusals and shrinks with each submission that goes. So what waits
does not knock all at once, and the rate of whoever is limited is found within a fifth.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

SMALLEST_GAP_S = 0.005
LARGEST_GAP_S = 1.0
GROWTH = 2.0
DECAY = 0.8


class Pace:
    """Shared by all submissions of one map. Instants are monotonic seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._line = asyncio.Lock()
        self._opens = 0.0
        self._gap = 0.0
        self._grew = 0.0

    async def turn(self) -> float:
        """Wait for one's turn; the instant at which it came."""
        async with self._line:
            while (left := self._opens - self._clock()) > 0:  # it may move on meanwhile
                await self._sleep(left)
            at = self._clock()
            self._opens = at + self._gap
            self._gap = self._gap * DECAY if self._gap > SMALLEST_GAP_S else 0.0
            return at

    def refused(self, sent: float, wait: float) -> None:
        """What was sent at that instant was refused, and may come again after `wait` seconds."""
        at = self._clock()
        self._opens = max(self._opens, at + wait)
        if sent >= self._grew:  # what was sent before the last refusal was heard of tells nothing new
            self._gap = min(LARGEST_GAP_S, max(2 * SMALLEST_GAP_S, self._gap * GROWTH))
            self._grew = at
