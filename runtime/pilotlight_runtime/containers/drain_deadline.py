"""Until when the calls of a draining container may go on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable


class DrainDeadline:
    """It only ever comes nearer: an app that is stopped while its containers drain has the shorter time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_at = math.inf
        self._timeout: asyncio.Timeout | None = None
        self._idle = asyncio.Event()

    def limit(self, within_s: float) -> None:
        """Let it be in `within_s` seconds at the latest."""
        until_at = self._clock() + within_s
        if until_at >= self._until_at:
            return
        self._until_at = until_at
        if self._timeout is not None and not self._timeout.expired() and not self._idle.is_set():
            self._timeout.reschedule(asyncio.get_running_loop().time() + within_s)

    def on_idle(self) -> None:
        """No call is left."""
        self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until no call is left.

        Raises:
            TimeoutError: the deadline has come first.
        """
        async with asyncio.timeout(max(0.0, self._until_at - self._clock())) as self._timeout:
            await self._idle.wait()
