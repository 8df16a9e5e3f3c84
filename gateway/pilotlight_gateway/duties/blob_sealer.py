"""The duty that seals what lies in clear, where sealing was switched on for a platform that has blobs.

One blob after the other, with pauses as long as the work: it goes on beside everything else. What is read meanwhile is
found under either name.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

import structlog

from pilotlight_core.bus import Bus, Lease
from pilotlight_core.host.blobs import BadBlob, BlobsDown, BlobsErased, NoBlobStore, SealedBlobs
from pilotlight_gateway.leased import while_leased

LOOKS_EVERY_S = 3_600.0
"""Processes that do not seal yet may store in clear; and a pass that was broken off goes on."""

log = structlog.get_logger(__name__)


class BlobSealer:
    """Seals while it holds the lease."""

    def __init__(self, bus: Bus, blobs: SealedBlobs, *, holder: str, looks_every_s: float = LOOKS_EVERY_S) -> None:
        self._bus = bus
        self._blobs = blobs
        self._holder = holder
        self._looks_every_s = looks_every_s

    async def run(self) -> None:
        """Run until cancelled."""
        lease = self._bus.lease("duty.blobs", self._holder)
        await while_leased(self._bus, lease, self._work, retried=(BlobsDown,), retry_after_s=60.0)

    async def _work(self, lease: Lease) -> None:
        while lease.valid(time.monotonic()):
            count = await seal_all(self._blobs)
            if count:
                log.info("blobs that lay in clear were sealed", blobs=count)
            await asyncio.sleep(self._looks_every_s)


async def seal_all(blobs: SealedBlobs) -> int:
    """Seal all blobs that lie in clear; how many. Raises BlobsDown.

    Those of a tenant that was erased are left, and those of one whose key cannot be used.
    """
    count, left = 0, set[str]()
    found: Any = blobs.in_clear()
    async with aclosing(found):
        async for one in found:
            if one.tenant in left:
                continue
            began = time.monotonic()
            try:
                count += await blobs.seal_stored(one.tenant, one.sha256)
            except BadBlob as error:
                log.error("a blob is damaged, and stays as it is", tenant=one.tenant, why=error.detail)
            except BlobsErased:
                left.add(one.tenant)
            except NoBlobStore as error:
                left.add(one.tenant)
                log.error("a tenant's blobs cannot be sealed", tenant=one.tenant, why=error.detail)
            await asyncio.sleep(time.monotonic() - began)
    return count
