"""How many bytes a tenant has in the blob store, so that uploads stay within its limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

from cachetools import LRUCache

from pilotlight_core.host.blobs import BlobStore
from pilotlight_gateway.tenancy.quotas import check_quota

LEAST_BYTES = 4_096
"""What a blob counts at least, as on a disk: a million empty files are not free."""
KNOWN_FOR_S = 60.0
COUNTING_SHARE = 20.0
"""A count is good for so many times what it took."""
REMEMBERED = 4_096
HOW = "delete an app; files that nothing needs any more are deleted within two days"


class _Known:
    """One tenant's bytes when they were counted, with what was uploaded here since."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.used = 0
        self.until = float("-inf")


class BlobUsage:
    """Counts by listing the store. What other gateways take meanwhile is seen at the next count."""

    def __init__(self, blobs: BlobStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._blobs = blobs
        self._clock = clock
        self._known: LRUCache[str, _Known] = LRUCache(REMEMBERED)

    async def of(self, tenant: str) -> int:
        """The tenant's bytes. Raises BlobsDown."""
        known = self._of(tenant)
        async with known.lock:
            if self._clock() >= known.until:
                began, used = self._clock(), 0
                listed: Any = self._blobs.listed(tenant)
                async with aclosing(listed):
                    async for one in listed:
                        used += counted(one.size)
                known.used = used
                known.until = self._clock() + max(KNOWN_FOR_S, COUNTING_SHARE * (self._clock() - began))
            return known.used

    def add(self, tenant: str, size: int) -> None:
        """A blob of `size` bytes was uploaded."""
        self._of(tenant).used += counted(size)

    def _of(self, tenant: str) -> _Known:
        known = self._known.get(tenant)
        if known is None:
            known = self._known[tenant] = _Known()
        return known


def counted(size: int) -> int:
    return max(size, LEAST_BYTES)


async def within_quota(
    pieces: AsyncIterator[bytes], tenant: str, allowed: int | None, used: int
) -> AsyncIterator[bytes]:
    """The pieces of an upload, as long as it fits.

    Raises:
        QuotaExceeded: names the limit.
    """
    size = 0
    check_blob_bytes(tenant, allowed, used, [size])
    async for piece in pieces:
        size += len(piece)
        check_blob_bytes(tenant, allowed, used, [size])
        yield piece


def check_blob_bytes(tenant: str, allowed: int | None, used: int, sizes: Iterable[int]) -> None:
    """Refuse blobs of these sizes in bytes beyond the limit. Raises QuotaExceeded."""
    check_quota(tenant, "blob_bytes", allowed, used + sum(map(counted, sizes)), "bytes of files", HOW)
