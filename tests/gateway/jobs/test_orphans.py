"""Blobs of jobs that nobody will ask for are deleted, and no others."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from pilotlight_core.host.blobs import BlobsDown, MemoryBlobs
from pilotlight_core.model import jobs
from pilotlight_core.model.jobs import JobRecord
from pilotlight_gateway.jobs.orphans import YOUNG_S, delete_orphans
from pilotlight_gateway.jobs.payloads import INPUT_INLINE, job_of, keep
from tests.gateway.jobs.records import JOB, job

LARGE = b"x" * (INPUT_INLINE + 1)
AT = 10_000.0


class Records:
    """Jobs by their keys."""

    def __init__(self, *kept: JobRecord) -> None:
        self.kept = {one.key: msgspec.msgpack.encode(one) for one in kept}

    async def __call__(self, key: str) -> bytes | None:
        return self.kept.get(key)


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


def ended(**more: object) -> JobRecord:
    return jobs.expired(job(**more), 2_000.0)


async def test_what_a_forgotten_job_left_goes(blobs: MemoryBlobs) -> None:
    """Its input, large or not to a page; once."""
    await keep(blobs, "acme", JOB, "input", LARGE)
    await keep(blobs, "acme", JOB, "run", 3 * 2**20 * b"y")
    assert await delete_orphans(blobs, Records(), AT) == 2
    assert not blobs.kept
    assert await delete_orphans(blobs, Records(), AT) == 0


async def test_what_a_job_needs_stays(blobs: MemoryBlobs) -> None:
    """Anything of one that has not ended; of one that has, what its record names and nothing else."""
    mine = await keep(blobs, "acme", JOB, "input", LARGE)
    lost = await keep(blobs, "acme", JOB, "a run that lost", LARGE)
    assert await delete_orphans(blobs, Records(job(input_blob=mine)), AT) == 0
    assert await delete_orphans(blobs, Records(ended(input_blob=mine)), AT) == 1
    assert set(blobs.kept) == {("acme", mine.sha256)}
    assert lost != mine


async def test_others_are_left_alone(blobs: MemoryBlobs) -> None:
    """What is young, small, a bundle's or a batch's; another tenant's job does not keep it, nor lose its own."""
    young = await keep(blobs, "acme", JOB, "input", LARGE)
    blobs.at["acme", young.sha256] = AT - YOUNG_S + 1
    await keep(blobs, "acme", JOB, "small", b"x")
    await keep(blobs, "acme", "batch_1", "chunks", LARGE)
    for content in (LARGE, b"pilotlight call_ input\n" + LARGE, b"pilotlight call_1 " + LARGE):
        await blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
    kept = set(blobs.kept)
    assert await delete_orphans(blobs, Records(), AT) == 0
    theirs = await keep(blobs, "zoo", JOB, "input", LARGE)
    assert await delete_orphans(blobs, Records(ended(input_blob=theirs)), AT) == 1
    assert set(blobs.kept) == kept


async def test_what_cannot_be_known_stays(blobs: MemoryBlobs) -> None:
    """A record that cannot be read, a store that cannot be reached."""
    ref = await keep(blobs, "acme", JOB, "input", LARGE)
    records = Records()
    records.kept[job().key] = b"\xc1"
    assert await delete_orphans(blobs, records, AT) == 0
    blobs.down = True
    with pytest.raises(BlobsDown):
        await delete_orphans(blobs, Records(), AT)
    assert ("acme", ref.sha256) in blobs.kept


def test_a_head_names_its_job() -> None:
    """And nothing else does."""
    assert job_of(b"pilotlight call_local_1_a input\nrest") == "call_local_1_a"
    assert job_of(b"") is None
