"""Where results go, and what they are counted as."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from pilotlight_core.host.blobs import BlobsDown, MemoryBlobKeys, MemoryBlobs, SealedBlobs
from pilotlight_core.model.records.jobs import JobError
from pilotlight_gateway.jobs.job_payloads import COUNTED, OUTPUT_INLINE, fetch_payload
from pilotlight_gateway.jobs.job_results import JobResults
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from tests.builders.jobs import job

LIFE_S = 1_000.0


def results(limit: int = 10**9, blobs: MemoryBlobs | None = None) -> JobResults:
    """Of a tenant that may store `limit` bytes."""
    quota = JobStorageQuota(MemoryQuotaRecords(), limit=limit, life=LIFE_S, wall=lambda: 200.0)
    return JobResults(blobs=MemoryBlobs() if blobs is None else blobs, quota=quota, wall=lambda: 200.0)


async def test_a_small_output_costs_nothing_more() -> None:
    """It is within what a record counts as."""
    made = results(limit=0)
    stored = await made.store(job(), b"x" * COUNTED)

    assert (stored.output, stored.blob, stored.charge) == (b"x" * COUNTED, None, None)


async def test_an_output_stands_in_the_record_while_there_is_room() -> None:
    """Up to a size; it is counted, until the job is forgotten."""
    made, output = results(), b"x" * OUTPUT_INLINE
    stored = await made.store(job(), output)
    assert (stored.output, stored.blob) == (output, None)
    assert stored.charge is not None

    large = await made.store(job(), b"x" * (OUTPUT_INLINE + 1))
    assert large.output == b""
    assert large.blob is not None


async def test_without_room_an_output_is_a_blob() -> None:
    """It is counted all the same: nobody stores without end."""
    made, output = results(limit=1_000), b"x" * 10_000
    stored = await made.store(job(), output)

    assert stored.blob is not None
    assert await fetch_payload(made.blobs, "acme", stored.blob) == output
    assert stored.charge is not None
    assert not await made.quota.fit("acme", 1, 200.0 + LIFE_S)


async def test_a_dropped_output_leaves_neither_blob_nor_charge() -> None:
    """The job was taken from us. That the store is away then is no harm: the blob is found as an orphan."""
    blobs = MemoryBlobs()
    made = results(limit=150_000, blobs=blobs)
    stored = await made.store(job(), b"x" * 100_000)
    await made.drop(job(), stored)
    assert not blobs.kept
    assert await made.quota.fit("acme", 140_000, 200.0 + 60.0)

    again = await made.store(job(), b"y" * 100_000)
    blobs.down = True
    await made.drop(job(), again)
    assert len(blobs.kept) == 1


async def test_an_output_waits_for_the_blob_store() -> None:
    """It has arrived, and is not to be lost."""
    tried = asyncio.Event()

    class Returning(MemoryBlobs):
        async def put(
            self, tenant: str, sha256: str, content: bytes | AsyncIterator[bytes], *, anew: bool = True
        ) -> int:
            if not tried.is_set():
                tried.set()
                raise BlobsDown("away")
            return await super().put(tenant, sha256, content, anew=anew)

    made = replace(results(blobs=Returning()), store_again_s=0.0)
    stored = await made.store(job(), b"x" * (OUTPUT_INLINE + 1))

    assert tried.is_set()
    assert stored.blob is not None


async def test_an_output_of_a_tenant_that_was_erased_is_dropped() -> None:
    """Nothing waits for ever, whether the platform seals or not, and nothing is stored in clear."""
    for seals in (True, False):
        backend = MemoryBlobs()
        blobs = SealedBlobs(backend, MemoryBlobKeys(erased={"acme"}), seals=seals)
        stored = await replace(results(), blobs=blobs).store(job(), b"x" * (OUTPUT_INLINE + 1))
        assert (stored.output, stored.blob, stored.charge) == (b"", None, None)
        assert not backend.kept


async def test_an_error_keeps_its_first_words_where_there_is_no_room() -> None:
    """Its traceback goes."""
    error = JobError(code="function_raised", detail="d" * 1_000, traceback="t" * 1_000)

    assert await results().fit_error(job(), error) == error
    cut = await results(limit=0).fit_error(job(), error)
    assert (cut.code, cut.detail, cut.traceback) == ("function_raised", "d" * COUNTED, "")
