"""The fake of the blob store, as tests script it; `test_blob_port` holds it to the contract of all stores."""

from __future__ import annotations

import hashlib

import pytest

from pilotlight_core.host.blobs import BlobsDown, MemoryBlobs

DATA = b"weights"
DIGEST = hashlib.sha256(DATA).hexdigest()


async def test_a_store_that_is_down_answers_nothing(anyio_backend: str) -> None:
    """It raises BlobsDown until `down` is reset."""
    blobs = MemoryBlobs()
    await blobs.put("acme", DIGEST, DATA)
    blobs.down = True

    with pytest.raises(BlobsDown):
        await blobs.read("acme", DIGEST)
    with pytest.raises(BlobsDown):
        await blobs.put("acme", DIGEST, DATA)
    with pytest.raises(BlobsDown):
        _ = [info async for info in blobs.listed()]
    blobs.down = False
    assert await blobs.read("acme", DIGEST) == DATA


async def test_what_was_put_can_be_counted_and_dated(anyio_backend: str) -> None:
    """A test can count the puts of a blob, and set its age."""
    blobs = MemoryBlobs()
    for _ in range(2):
        await blobs.put("acme", DIGEST, DATA)
    blobs.at["acme", DIGEST] = 77.0

    assert blobs.puts == 2
    [info] = [info async for info in blobs.listed()]
    assert (info.tenant, info.sha256, info.size, info.at) == ("acme", DIGEST, len(DATA), 77.0)
