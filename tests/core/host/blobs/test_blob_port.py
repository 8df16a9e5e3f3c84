"""One contract for all blob stores: a folder, S3 (moto's server) and the fake, in clear and sealed."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from pilotlight_core.host.blobs import (
    BadBlob,
    BlobBackend,
    BlobMissing,
    BlobStore,
    MemoryBlobKeys,
    MemoryBlobs,
    NoBlobStore,
    SealedBlobs,
    open_blobs,
)
from pilotlight_core.host.blobs.blob_port import CHUNK
from pilotlight_core.host.blobs.whole_reads import BlobSource, read_pieces
from pilotlight_core.model.errors import BadInput
from tests.waiting import until_found

CONTENT = bytes(range(256)) * 5000  # more than one piece
SHA = hashlib.sha256(CONTENT).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()
EMPTY = hashlib.sha256(b"").hexdigest()


@pytest.fixture(params=["memory", "folder", "s3"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobBackend]:
    store: BlobBackend
    if request.param == "memory":
        store = MemoryBlobs(time.time)
    elif request.param == "folder":
        store = open_blobs(f"file://{tmp_path}")
    else:
        endpoint = request.getfixturevalue("s3_endpoint")
        store = open_blobs(f"s3://blobs/{tmp_path.name}?endpoint={endpoint}")
    yield store
    await store.aclose()


@pytest.fixture(params=["clear", "sealed", "found"])
async def store(request: pytest.FixtureRequest, backend: BlobBackend) -> BlobStore:
    """In clear; sealed; and in clear for a tenant who has a key, as after sealing was switched off."""
    if request.param == "clear":
        return backend
    keys = MemoryBlobKeys()
    for tenant in ("default", "acme"):
        await keys.make(tenant)
    return SealedBlobs(backend, keys, seals=request.param == "sealed")


async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


async def test_what_was_put_is_read(store: BlobStore) -> None:
    """Whole or in pieces, in and out, it is the same; pieces are bounded."""
    assert await store.put("default", SHA, in_pieces(CONTENT)) == len(CONTENT)

    pieces = [piece async for piece in store.get("default", SHA)]

    assert b"".join(pieces) == CONTENT == await store.read("default", SHA)
    assert max(map(len, pieces)) <= CHUNK


async def test_what_lies_there_is_read_whole_in_a_thread(backend: BlobBackend) -> None:
    """As it is stored; whoever takes it may refuse it, which is no fault of the store; then the next is read."""
    await backend.put("default", SHA, CONTENT)
    await backend.put("default", EMPTY, b"")

    def taken(source: BlobSource) -> bytes:
        found = bytearray()
        read_pieces(source, found.extend)
        return bytes(found)

    def refused(source: BlobSource) -> None:
        source.readinto(memoryview(bytearray(10)))
        raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"):
        await backend.read_whole("default", SHA, refused)
    assert await asyncio.gather(*(backend.read_whole("default", SHA, taken) for _ in range(40))) == [CONTENT] * 40
    assert await backend.read_whole("default", EMPTY, taken) == b""
    with pytest.raises(BlobMissing):
        await backend.read_whole("other", SHA, taken)


async def test_its_beginning_is_read_alone(store: BlobStore) -> None:
    """As much as was asked for, or all of what is shorter."""
    await store.put("default", SHA, CONTENT)
    await store.put("default", OTHER, b"other")
    await store.put("default", EMPTY, b"")

    assert await store.head("default", SHA, 300) == CONTENT[:300]
    assert await store.head("default", OTHER, 300) == b"other"
    assert await store.head("default", EMPTY, 300) == b""
    with pytest.raises(BlobMissing):
        await store.head("other", SHA, 300)


async def test_putting_again_is_fine(store: BlobStore) -> None:
    """A repetition answers the same size."""
    await store.put("default", SHA, CONTENT)

    assert await store.put("default", SHA, CONTENT) == len(CONTENT)
    assert await store.read("default", SHA) == CONTENT


async def test_what_is_renewed_is_as_if_it_had_been_put_again(store: BlobStore) -> None:
    """Its content is the same; what is not there cannot be renewed, and does not come to be by it."""
    await store.put("default", SHA, CONTENT)
    await store.put("default", EMPTY, b"")
    before = await store.stored("default", [SHA])

    async def renewed() -> bool:
        """S3 counts whole seconds."""
        there = await store.renew("default", SHA) and await store.renew("default", EMPTY)
        return there and (await store.stored("default", [SHA]))[SHA].at > before[SHA].at

    await until_found(renewed)
    assert await store.read("default", SHA) == CONTENT
    assert await store.read("default", EMPTY) == b""
    assert not await store.renew("other", SHA)
    assert not await store.renew("default", OTHER)
    assert len([one async for one in store.listed()]) == 2


async def test_an_empty_blob_is_a_blob(store: BlobStore) -> None:
    """A file may be empty."""
    assert await store.put("default", EMPTY, b"") == 0
    assert await store.read("default", EMPTY) == b""
    assert {one.sha256: one.size for one in (await store.stored("default", [EMPTY])).values()} == {EMPTY: 0}


async def test_content_that_is_not_what_it_says_is_refused(store: BlobStore) -> None:
    """Wrong content raises, naming both digests, and leaves nothing behind."""
    with pytest.raises(BadBlob, match=SHA):
        await store.put("default", OTHER, CONTENT)

    assert {one.sha256: one.size for one in (await store.stored("default", [OTHER, SHA])).values()} == {}


async def test_a_missing_blob_is_said(store: BlobStore) -> None:
    """Reading what is not there raises BlobMissing."""
    with pytest.raises(BlobMissing, match=SHA):
        await store.read("default", SHA)
    with pytest.raises(BlobMissing):
        await anext(aiter(store.get("default", SHA)))


async def test_tenants_do_not_share(store: BlobStore) -> None:
    """Having a digest gives no way to another tenant's file."""
    await store.put("one", SHA, CONTENT)

    assert {one.sha256: one.size for one in (await store.stored("one", [SHA, OTHER])).values()} == {SHA: len(CONTENT)}
    assert {one.sha256: one.size for one in (await store.stored("two", [SHA])).values()} == {}
    with pytest.raises(BlobMissing):
        await store.read("two", SHA)


async def test_deleted_is_gone(store: BlobStore) -> None:
    """Deleting forgets a blob; once more changes nothing."""
    await store.put("default", SHA, CONTENT)

    await store.delete("default", SHA)
    await store.delete("default", SHA)

    assert {one.sha256: one.size for one in (await store.stored("default", [SHA])).values()} == {}


@pytest.mark.parametrize(
    ("tenant", "sha"), [("../x", SHA), ("a/b", SHA), ("", SHA), ("x", "../" + SHA), ("x", "A" * 64)]
)
async def test_names_cannot_leave_the_store(store: BlobStore, tenant: str, sha: str) -> None:
    """Neither a tenant nor a digest can become a path."""
    with pytest.raises(BadInput):
        await store.put(tenant, sha, b"")
    with pytest.raises(BadInput):
        await store.read(tenant, sha)


async def test_all_are_listed(store: BlobStore) -> None:
    """Of every tenant, with their sizes and since when."""
    assert [one async for one in store.listed()] == []
    began = time.time()
    await store.put("default", SHA, CONTENT)
    await store.put("acme", SHA, CONTENT)
    await store.put("acme", OTHER, b"other")

    listed = [one async for one in store.listed()]
    assert sorted((one.tenant, one.sha256, one.size) for one in listed) == sorted(
        [("acme", SHA, len(CONTENT)), ("acme", OTHER, 5), ("default", SHA, len(CONTENT))]
    )
    assert all(began - 2 <= one.at <= time.time() + 2 for one in listed)


async def test_a_link_reads_one_blob_and_needs_no_key(tmp_path: Path, s3_endpoint: str) -> None:
    """Only S3 gives links."""
    store = open_blobs(f"s3://blobs/{tmp_path.name}?endpoint={s3_endpoint}")
    await store.put("default", SHA, CONTENT)

    url = await store.link("default", SHA, 60.0)
    async with httpx.AsyncClient() as client:
        assert (await client.get(url)).content == CONTENT
    assert "X-Amz-Expires=60" in url or "Expires=" in url
    assert await MemoryBlobs().link("default", SHA, 60.0) == ""
    await store.aclose()


async def test_a_store_is_told_from_others_by_its_id(store: BlobStore) -> None:
    """There is none until it is made; then it is the same for everybody, and no blob."""
    assert await store.store_id(create=False) == ""
    made = await store.store_id(create=True)

    assert made
    assert await store.store_id(create=True) == await store.store_id(create=False) == made
    assert [info async for info in store.listed()] == []


async def test_a_bucket_that_is_not_there_is_the_operators_to_make(s3_endpoint: str) -> None:
    """The refusal names it, and is no tenant's mistake."""
    store = open_blobs(f"s3://no-such-bucket/x?endpoint={s3_endpoint}")
    with pytest.raises(NoBlobStore, match=r"The bucket no-such-bucket cannot be used: .*NoSuchBucket") as refused:
        await store.store_id(create=True)
    with pytest.raises(NoBlobStore):
        await store.put("acme", EMPTY, b"")
    await store.aclose()

    assert (refused.value.meaning.status, refused.value.wire_code) == (503, "misconfigured")


async def test_a_folder_that_is_a_file_is_no_store(tmp_path: Path) -> None:
    """Nor is one below it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(NoBlobStore, match="is no folder"):
        await open_blobs(f"file://{tmp_path}/file").store_id(create=False)


async def test_all_of_a_tenant_is_erased(backend: BlobBackend) -> None:
    """Whatever it is called, and nothing of another's; a repetition finds nothing."""
    keys = MemoryBlobKeys()
    for seals in (False, True):
        store = SealedBlobs(backend, keys, seals=seals)
        await store.put("acme", SHA, CONTENT)
        await store.put("acme", OTHER, b"other")
        await store.put("acme-2", SHA, CONTENT)
    keys.keys.clear()

    erased = await store.erase("acme")

    assert erased.blobs == 2
    assert erased.size > len(CONTENT)
    assert (await store.erase("acme")).blobs == 0
    assert [one.tenant async for one in backend.listed()] == ["acme-2"]
