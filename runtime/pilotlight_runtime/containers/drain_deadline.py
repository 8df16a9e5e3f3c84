"""Until when the calls of a draining container may go on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable


class DrainDeadline:
    """It only comes nearer: an app that is stopped while its containers drain has the shorter time.

    But what a notice of the node's end has limited is as before once that is withdrawn.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_at = self._noticed_at = math.inf
        self._timeout: asyncio.Timeout | None = None
        self._idle = asyncio.Event()

    def limit(self, within_s: float, *, by_notice: bool = False) -> None:
        """Let it be in `within_s` seconds at the latest."""
        until_at = self._clock() + within_s
        if by_notice:
            self._noticed_at = min(self._noticed_at, until_at)
        else:
            self._until_at = min(self._until_at, until_at)
        self._reschedule()

    def withdraw_notice(self) -> None:
        """The node stays."""
        self._noticed_at = math.inf
        self._reschedule()

    @property
    def _left_s(self) -> float:
        return max(0.0, min(self._until_at, self._noticed_at) - self._clock())

    def _reschedule(self) -> None:
        if self._timeout is not None and not self._timeout.expired() and not self._idle.is_set():
            left_s = self._left_s
            self._timeout.reschedule(None if left_s == math.inf else asyncio.get_running_loop().time() + left_s)

    def on_idle(self) -> None:
        """No call is left."""
        self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until no call is left.

        Raises:
            TimeoutError: the deadline has come first.
        """
        left_s = self._left_s
        async with asyncio.timeout(None if left_s == math.inf else left_s) as self._timeout:
            await self._idle.wait()
