"""Values that are read from the blob store again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from cachetools import LRUCache

ReadValue = TypeVar("ReadValue")


class CachedReads(Generic[ReadValue]):
    """Reads values by tenant and digest. The latest ones stay in memory, as far as `most` goes by what `size` says of
    each; those who ask for the same one at once share one read."""

    def __init__(
        self, read: Callable[[str, str], Awaitable[ReadValue]], *, most: int, size: Callable[[ReadValue], int]
    ) -> None:
        self._read = read
        self._most = most
        self._size = size
        self._known: LRUCache[tuple[str, str], ReadValue] = LRUCache(most, getsizeof=size)
        self._reading: dict[tuple[str, str], asyncio.Task[ReadValue]] = {}

    async def get(self, tenant: str, sha256: str) -> ReadValue:
        """The value. Raises what `read` raises; nothing is kept then."""
        key = (tenant, sha256)
        if (known := self._known.get(key)) is not None:
            return known
        if (reading := self._reading.get(key)) is None:
            reading = self._reading[key] = asyncio.create_task(self._fill(key))
            reading.add_done_callback(lambda done: done.cancelled() or done.exception())  # also if nobody waits
        return await asyncio.shield(reading)

    async def _fill(self, key: tuple[str, str]) -> ReadValue:
        try:
            value = await self._read(*key)
            if self._size(value) <= self._most:
                self._known[key] = value
            return value
        finally:
            del self._reading[key]
