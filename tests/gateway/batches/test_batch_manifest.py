"""The inputs of a batch as blobs: written as they come, read by chunk, gone with the batch."""

from __future__ import annotations

import pytest

from pilotlight_core.host.blobs import BlobMissing, MemoryBlobs
from pilotlight_core.model.records.batches import BatchItem
from pilotlight_gateway.batches.batch_manifest import (
    CHUNK_BYTES,
    CHUNK_ITEMS,
    ManifestWriter,
    drop_manifest,
    read_chunks,
    read_items,
)

BATCH = "batch_00000000000000000001 x"


def items(count: int, size: int = 1, first: int = 0) -> list[BatchItem]:
    return [BatchItem(index=first + number, custom_id="", input=bytes(size)) for number in range(count)]


async def written(blobs: MemoryBlobs, *parts: list[BatchItem]) -> ManifestWriter:
    writer = ManifestWriter(blobs, "acme", BATCH)
    for part in parts:
        await writer.add(part)
    return writer


async def test_items_are_read_back_in_their_order() -> None:
    """Over chunks that are cut by number."""
    blobs = MemoryBlobs()
    given = items(CHUNK_ITEMS + 10)
    writer = await written(blobs, given[:7], [], given[7:])
    chunks = await read_chunks(blobs, "acme", await writer.finish())

    assert [(chunk.first, chunk.count) for chunk in chunks] == [(0, CHUNK_ITEMS), (CHUNK_ITEMS, 10)]
    read = [item for chunk in chunks for item in await read_items(blobs, "acme", chunk)]
    assert read == given
    assert writer.bytes == CHUNK_ITEMS + 10


async def test_chunks_are_cut_by_size_too() -> None:
    """One item alone may be larger than a chunk."""
    blobs = MemoryBlobs()
    large = [*items(1, CHUNK_BYTES // 2), *items(1, CHUNK_BYTES, 1), *items(1, 1, 2)]
    chunks = await read_chunks(blobs, "acme", await (await written(blobs, large)).finish())

    assert [chunk.count for chunk in chunks] == [1, 1, 1]


async def test_a_manifest_that_is_not_needed_leaves_nothing() -> None:
    """Half written, or finished; another batch with the same inputs keeps its own."""
    blobs = MemoryBlobs()
    other = ManifestWriter(blobs, "acme", "batch_00000000000000000002 y")
    await other.add(items(3))
    kept = await other.finish()
    before = dict(blobs.kept)
    half = await written(blobs, items(CHUNK_ITEMS + 1))
    await half.drop()
    whole = await written(blobs, items(3))
    ref = await whole.finish()
    await drop_manifest(blobs, "acme", ref)
    await drop_manifest(blobs, "acme", ref)

    assert blobs.kept == before
    assert await read_chunks(blobs, "acme", kept)
    with pytest.raises(BlobMissing):
        await read_chunks(blobs, "acme", ref)
