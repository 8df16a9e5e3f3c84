"""How much of its nested calls' answers a container may have been sent without having read it.

An honest function may ask for much and read slowly. Its answers wait outside of its socket then: large ones at their
gateway, small ones with what asked for them, and nothing more is asked for.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

MOST_UNREAD = 64 * 2**20
"""Half of what a container is killed for; the rest is room for the inputs of its own calls."""


class Reader(Protocol):
    """What a container's connection says of what it has read."""

    @property
    def unsent_bytes(self) -> int:
        """What waits to be read."""
        ...

    @property
    def is_writable(self) -> bool:
        """Whether next to nothing waits."""
        ...

    async def wait_writable(self) -> None: ...


class AnswerRoom:
    """Of one container."""

    def __init__(self, reader: Reader, most: int = MOST_UNREAD) -> None:
        self._reader = reader
        self._most = most
        self._coming = 0
        """Bytes of answers that have room and were not sent yet."""
        self._changed = asyncio.Event()

    @property
    def held(self) -> int:
        """What has room already."""
        return self._coming + self._reader.unsent_bytes

    async def take(self, size: int) -> None:
        """Wait until there is room for an answer, and take it; one that is larger than all of it comes alone."""
        while self.held and self.held + size > self._most:
            if not self._reader.is_writable:
                await self._reader.wait_writable()
            elif self._coming:
                await self._wait_changed()
            else:
                break
        self._coming += size

    async def take_within(self, size: int, timeout_s: float) -> bool:
        """Whether there was room by then, which is taken."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.take(size)
        except TimeoutError:
            return False
        return True

    def give_back(self, size: int) -> None:
        """An answer was sent, which the reader counts from now on, or is not coming."""
        self._coming -= size
        self._changed.set()

    async def _wait_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()
