"""Blobs of jobs: each its owner's alone, whatever it holds."""

from __future__ import annotations

import pytest

from pilotlight_core.host.blobs import BlobMissing, MemoryBlobs
from pilotlight_gateway.jobs.job_payloads import LONGEST_HEAD, fetch_payload, owner_of, store_payload

JOB, BATCH = "call_local_1_00000000000000000001", "batch_00000000000000000001"


@pytest.mark.parametrize("data", [b"", b"\x80", b"pilotlight call_x input\n", bytes(100_000)])
async def test_what_was_stored_is_fetched(data: bytes) -> None:
    """Of any size and content, also such as a head has."""
    blobs = MemoryBlobs()
    ref = await store_payload(blobs, "acme", JOB, "input", data)

    assert ref.size == len(data)
    assert await fetch_payload(blobs, "acme", ref) == data
    with pytest.raises(BlobMissing):
        await fetch_payload(blobs, "rival", ref)


async def test_the_same_content_of_two_owners_is_two_blobs() -> None:
    """One goes with its owner, and the other one stays."""
    blobs = MemoryBlobs()
    refs = {await store_payload(blobs, "acme", owner, what, b"same") for owner in (JOB, BATCH) for what in ("a", "b")}

    assert len({ref.sha256 for ref in refs}) == len(blobs.kept) == 4


async def test_no_file_can_be_made_that_is_the_same_blob() -> None:
    """Who knows a job and its input does not know what its blob is called: such a file would go with the job."""
    blobs = MemoryBlobs()
    refs = {await store_payload(blobs, "acme", JOB, "input", b"same") for _ in range(3)}

    assert len({ref.sha256 for ref in refs}) == 3
    for ref in refs:
        assert await fetch_payload(blobs, "acme", ref) == b"same"


async def test_a_blob_names_its_owner() -> None:
    """In its head; what begins otherwise is nobody's."""
    blobs = MemoryBlobs()
    for owner in (JOB, BATCH):
        ref = await store_payload(blobs, "acme", owner, "items 0", b"data")
        assert owner_of(await blobs.head("acme", ref.sha256, LONGEST_HEAD)) == owner
    for content in (b"", b"pilotlight", b"a bundle", b"pilotlight user_1 x\n", f"pilotlight {JOB}\n".encode()):
        assert owner_of(content) is None
