"""Batches on a real bus: every item becomes one job and is counted once, whoever drives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from msgspec import structs

from pilotlight_core.bus import Bus
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.batches import BatchQuery, BatchRecord, BatchState, ItemCounts
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_gateway.batches.batch_manifest import CHUNK_ITEMS
from pilotlight_gateway.duties.batch_driver import BatchDriver
from pilotlight_gateway.duties.batch_progress import OUT_AT_MOST
from tests.gateway.batches.makers import version
from tests.gateway.duties.driven_batches import Platform
from tests.waiting import until_found

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def platform(bus: Bus) -> Platform:
    return Platform(bus)


async def test_every_item_runs_at_the_lowest_class_and_is_counted(platform: Platform) -> None:
    """Over several chunks; results are in the order of the lines."""
    platform.runs = True
    count = CHUNK_ITEMS + 20
    record = await platform.submit(count, traceparent=TRACE)
    async with platform.driving():
        done = await platform.until(record, BatchState.COMPLETED)

    assert done.counts == ItemCounts(succeeded=count)
    assert done.submitted == done.total == count
    assert await platform.results(done) == [(n, "succeeded", {"name": str(n)}) for n in range(count)]
    job = await platform.jobs.read(platform.tenant, platform.told[0])
    assert job is not None
    assert (job.job.priority, job.job.timeout, job.job.traceparent) == (Priority.BATCH, 12.0, TRACE)


async def test_only_so_many_wait_at_a_time(platform: Platform) -> None:
    """The others stay in the batch until some have ended; what has ended can be read meanwhile."""
    record = await platform.submit(OUT_AT_MOST + 30)
    async with platform.driving():
        told = list(await platform.until_told(OUT_AT_MOST))
        for job in told[:10]:
            await platform.end(job)
        await platform.end(told[10], "bad_output")
        await platform.until_told(OUT_AT_MOST + 11)
        assert len(platform.told) == OUT_AT_MOST + 11

        async def counted() -> BatchRecord | None:
            found = await platform.desk.find(platform.tenant, record.id)
            return found if found.counts.ended == 11 else None

        present = await until_found(counted)

    assert present.counts == ItemCounts(succeeded=10, failed=1)
    partial = await platform.results(present)
    assert len(partial) == 11
    assert len(await platform.results(present, frozenset({"failed"}))) == 1


async def test_cancelling_leaves_what_runs(platform: Platform) -> None:
    """What waits is cancelled, nothing more is submitted, and what runs ends by itself."""
    record = await platform.submit(OUT_AT_MOST + 30)
    async with platform.driving():
        told = list(await platform.until_told(OUT_AT_MOST))
        await platform.start(told[0])
        cancelling = await platform.desk.cancel(platform.tenant, record.id)

        async def only_one_left() -> bool | None:
            found = await platform.results(cancelling, frozenset({"cancelled"}))
            return True if len(found) == OUT_AT_MOST - 1 else None

        await until_found(only_one_left)
        assert (await platform.desk.find(platform.tenant, record.id)).state is BatchState.CANCELLING
        await platform.end(told[0])
        done = await platform.until(record, BatchState.CANCELLED)

    assert cancelling.state is BatchState.CANCELLING
    assert done.counts == ItemCounts(succeeded=1, cancelled=OUT_AT_MOST - 1)
    assert len(set(platform.told)) == OUT_AT_MOST


async def test_a_cancelled_batch_is_resumed(platform: Platform) -> None:
    """What was cancelled, or was not submitted, runs; what was done is not done again."""
    record = await platform.submit(30)
    async with platform.driving():
        told = list(await platform.until_told(30))
        for job in told[:10]:
            await platform.end(job)
        await platform.desk.cancel(platform.tenant, record.id)
        await platform.until(record, BatchState.CANCELLED)
        platform.told.clear()
        platform.runs = True
        await platform.desk.resume(platform.tenant, record.id)
        done = await platform.until(record, BatchState.COMPLETED)

    assert done.counts == ItemCounts(succeeded=30)
    assert sorted(platform.told) == sorted(told[10:])


async def test_what_is_forgotten_is_not_done_again(platform: Platform) -> None:
    """Nobody can tell an item that has ended and is not kept any more from one that never ran: neither runs."""
    record = await platform.submit(3)
    async with platform.driving():
        told = list(await platform.until_told(3))
        await platform.end(told[0])
    subject = key_subject(JOB_BUCKET, f"{platform.tenant}.{told[0]}")
    await platform.bus.purge_before(bucket_stream(JOB_BUCKET), subject, 2**62)
    found = await platform.store.read(platform.tenant, record.id)
    assert found is not None
    await platform.store.update(structs.replace(found[0], created_at=record.created_at - record.keep_s), found[1])
    platform.runs = True
    async with platform.driving():
        done = await platform.until(record, BatchState.COMPLETED)

    assert await platform.jobs.read(platform.tenant, told[0]) is None
    assert done.counts == ItemCounts(succeeded=2, expired=1)


async def test_what_somebody_cancels_by_itself_stays_so(platform: Platform) -> None:
    """A new driver is no resumption."""
    record = await platform.submit(2)
    async with platform.driving():
        told = list(await platform.until_told(2))
    found = await platform.jobs.read(platform.tenant, told[0])
    assert found is not None
    await platform.jobs.update(jobs.cancelled(found.job, 5.0), found.revision)
    platform.runs = True
    async with platform.driving():
        done = await platform.until(record, BatchState.COMPLETED)

    assert done.counts == ItemCounts(succeeded=1, cancelled=1)


async def test_a_batch_whose_inputs_are_gone_fails_and_says_so(platform: Platform) -> None:
    """It does not stand in the way of others."""
    record = await platform.submit(2)
    await platform.blobs.delete(platform.tenant, record.chunks.sha256)
    async with platform.driving():
        failed = await platform.until(record, BatchState.FAILED)

    assert "an input is gone" in failed.reason


async def test_a_large_input_is_a_blob_of_its_job(platform: Platform) -> None:
    """As with a job that is submitted by itself."""

    async def body() -> AsyncIterator[bytes]:
        yield msgspec.json.encode({"input": {"name": "x" * 100_000}})

    query = BatchQuery(function="shop.hello")
    record = await platform.desk.submit(platform.tenant, version(platform.tenant), query, body())
    async with platform.driving():
        (job,) = await platform.until_told(1)
        found = await platform.jobs.read(platform.tenant, job)
        await platform.end(job)
        await platform.until(record, BatchState.COMPLETED)

    assert found is not None
    assert found.job.input == b""
    assert found.job.input_blob is not None
    assert found.job.input_blob.size > 100_000


async def test_a_driver_whose_turn_is_over_leaves_the_rest(platform: Platform) -> None:
    """However far it is; who goes on submits nothing twice and misses no end."""
    record = await platform.submit(OUT_AT_MOST + 30)
    for so_far in (0, OUT_AT_MOST):
        found = await platform.store.read(platform.tenant, record.id)
        assert found is not None
        driver = BatchDriver(platform.ground, *found)
        if not so_far:
            driver.leave()
        driving = asyncio.ensure_future(driver.run())
        told = list(await platform.until_told(so_far))
        driver.leave()
        await driving
        assert platform.told == told
        assert (await platform.desk.find(platform.tenant, record.id)).state is BatchState.RUNNING
    for job in told[:10]:
        await platform.end(job)
    platform.told.clear()
    platform.runs = True
    async with platform.driving():
        done = await platform.until(record, BatchState.COMPLETED)
    assert done.counts == ItemCounts(succeeded=OUT_AT_MOST + 30)
    assert not set(platform.told) & set(told[:10])


async def test_a_cancelled_batch_is_left_as_well(platform: Platform) -> None:
    """What runs of it is waited for in another turn."""
    record = await platform.submit(3)
    async with platform.driving():
        told = list(await platform.until_told(3))
    await platform.start(told[0])
    await platform.desk.cancel(platform.tenant, record.id)
    found = await platform.store.read(platform.tenant, record.id)
    assert found is not None
    driver = BatchDriver(platform.ground, *found)
    driving = asyncio.ensure_future(driver.run())

    async def others() -> bool | None:
        return True if len(await platform.results(found[0], frozenset({"cancelled"}))) == 2 else None

    await until_found(others)
    driver.leave()
    await driving
    assert (await platform.desk.find(platform.tenant, record.id)).state is BatchState.CANCELLING
    await platform.end(told[0])
    async with platform.driving():
        done = await platform.until(record, BatchState.CANCELLED)
    assert done.counts == ItemCounts(succeeded=1, cancelled=2)
