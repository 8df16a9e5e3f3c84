"""The inputs of a batch as blobs: chunks of items, and their list. All functions raise as `BlobStore` does."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.model.records.batches import BatchChunk, BatchItem
from pilotlight_core.model.records.jobs import BlobRef
from pilotlight_gateway.jobs.job_payloads import fetch_payload, store_payload

CHUNK_ITEMS = 500
CHUNK_BYTES = 4 * 2**20
"""Only a single larger item exceeds it."""

_encoder = msgspec.msgpack.Encoder()
_items = msgspec.msgpack.Decoder(tuple[BatchItem, ...])
_chunks = msgspec.msgpack.Decoder(tuple[BatchChunk, ...])


class ManifestWriter:
    """Collects items into chunks, and stores the full ones."""

    def __init__(self, blobs: BlobStore, tenant: str, batch: str) -> None:
        self._blobs = blobs
        self._tenant = tenant
        self._batch = batch
        self._open: list[BatchItem] = []
        self._size = 0
        self.bytes = 0
        """Size of all items so far."""
        self._chunks: list[BatchChunk] = []
        self._kept: list[BlobRef] = []

    async def add(self, items: list[BatchItem]) -> None:
        for item in items:
            size = len(item.input) + len(item.custom_id)
            if self._open and (len(self._open) == CHUNK_ITEMS or self._size + size > CHUNK_BYTES):
                await self._cut()
            self._open.append(item)
            self._size += size
            self.bytes += size

    async def finish(self) -> BlobRef:
        """Store the rest, and the list of chunks, whose reference is the result."""
        if self._open:
            await self._cut()
        return await self._keep("chunks", _encoder.encode(self._chunks))

    async def drop(self) -> None:
        """Delete what was stored, for a batch that is not created."""
        for ref in self._kept:
            await self._blobs.delete(self._tenant, ref.sha256)

    async def _cut(self) -> None:
        items, self._open, self._size = self._open, [], 0
        data = await asyncio.to_thread(_encoder.encode, items)
        ref = await self._keep(f"items {items[0].index}", data)
        self._chunks.append(BatchChunk(ref, items[0].index, len(items)))

    async def _keep(self, what: str, data: bytes) -> BlobRef:
        ref = await store_payload(self._blobs, self._tenant, self._batch, what, data)
        self._kept.append(ref)
        return ref


async def read_chunks(blobs: BlobStore, tenant: str, ref: BlobRef) -> tuple[BatchChunk, ...]:
    return _chunks.decode(await fetch_payload(blobs, tenant, ref))


async def read_items(blobs: BlobStore, tenant: str, chunk: BatchChunk) -> tuple[BatchItem, ...]:
    return _items.decode(await fetch_payload(blobs, tenant, chunk.blob))


async def drop_manifest(blobs: BlobStore, tenant: str, ref: BlobRef) -> None:
    """Delete the inputs of a batch, their list last, so that another attempt finds what is left."""
    with contextlib.suppress(BlobMissing):
        for chunk in await read_chunks(blobs, tenant, ref):
            await blobs.delete(tenant, chunk.blob.sha256)
        await blobs.delete(tenant, ref.sha256)
