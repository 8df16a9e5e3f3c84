"""What lies in clear is sealed by and by."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobsDown, MemoryBlobKeys, MemoryBlobs, NoBlobStore, SealedBlobs
from pilotlight_core.host.blobs.blob_sealing import BlobKey
from pilotlight_gateway.duties.blob_sealer import BlobSealer, seal_all
from tests.waiting import until_found


class Stored:
    """A store in which two tenants have blobs in clear, one of them damaged."""

    def __init__(self) -> None:
        self.backend = MemoryBlobs()
        self.blobs = SealedBlobs(self.backend, MemoryBlobKeys(), seals=True)
        for tenant in ("acme", "rival"):
            for content in (b"one", b"two"):
                self.backend.kept[tenant, hashlib.sha256(content).hexdigest()] = content
        self.damaged = hashlib.sha256(b"three").hexdigest()
        self.backend.kept["acme", self.damaged] = b"no three"

    async def in_clear(self) -> list[str]:
        return [one.sha256 async for one in self.blobs.in_clear()]

    async def is_sealed(self) -> bool:
        return await self.in_clear() == [self.damaged]


async def test_all_is_sealed_but_what_is_damaged() -> None:
    """And the next pass has nothing to do."""
    stored = Stored()

    assert await seal_all(stored.blobs) == 4
    assert await stored.in_clear() == [stored.damaged]
    assert await stored.blobs.read("acme", hashlib.sha256(b"one").hexdigest()) == b"one"
    assert await seal_all(stored.blobs) == 0
    stored.backend.down = True
    with pytest.raises(BlobsDown):
        await seal_all(stored.blobs)


class SomeKeys(MemoryBlobKeys):
    """The key of one tenant cannot be used."""

    async def make(self, tenant: str) -> BlobKey:
        if tenant == "locked":
            raise NoBlobStore("sealed by a third key")
        return await super().make(tenant)


async def test_a_tenant_that_was_erased_or_whose_key_is_lost_ends_no_pass() -> None:
    """Others' blobs are sealed."""
    backend, sha = MemoryBlobs(), hashlib.sha256(b"one").hexdigest()
    for tenant in ("erased", "locked", "rival"):
        backend.kept[tenant, sha] = b"one"
    blobs = SealedBlobs(backend, SomeKeys(erased={"erased"}), seals=True)

    assert await seal_all(blobs) == 1
    assert [one.tenant async for one in blobs.in_clear()] == ["erased", "locked"]


async def test_the_duty_seals_what_comes_later_too(bus: Bus) -> None:
    """As from a process that does not seal yet."""
    stored = Stored()
    task = asyncio.create_task(BlobSealer(bus, stored.blobs, holder="test", looks_every_s=0.01).run())
    try:
        for content in (b"later", b"and later"):
            stored.backend.kept["acme", hashlib.sha256(content).hexdigest()] = content
            await until_found(stored.is_sealed)
    finally:
        task.cancel()
        await asyncio.wait({task})
