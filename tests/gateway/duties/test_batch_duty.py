"""The duty of batches on a real bus: whoever has it goes on with what it finds, and shows how much that is."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobMissing
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.batches import BatchState, ItemCounts
from pilotlight_core.model.subjects import BATCH_BUCKET
from pilotlight_gateway.duties.batch_duty import BatchDuty, BatchDutyStatistics, expired_batches
from tests.gateway.batches.makers import batch
from tests.gateway.duties.driven_batches import Platform
from tests.waiting import until_found


@pytest.fixture
def platform(bus: Bus) -> Platform:
    return Platform(bus)


async def test_what_cannot_be_read_stands_in_nobodys_way(platform: Platform) -> None:
    """A record, or the inputs of a batch: the duty goes on with the others, and says what it can."""
    await platform.bus.kv(BATCH_BUCKET).put(f"{platform.tenant}.batch_{'0' * 20}", b"\xc1 of a version to come")
    damaged = await platform.submit(2)
    platform.blobs.kept[platform.tenant, damaged.chunks.sha256] = b"\xc1" * 100
    platform.runs = True
    async with platform.driving():
        failed = await platform.until(damaged, BatchState.FAILED)
        record = await platform.submit(2)
        await platform.until(record, BatchState.COMPLETED)

    assert failed.reason == "its inputs cannot be read"
    assert [one.id for one in await platform.desk.all(platform.tenant)] == [record.id, damaged.id]


async def test_inputs_are_removed_when_their_retention_is_over(platform: Platform) -> None:
    """Not before, and of that batch only."""
    platform.runs = True
    old, young = await platform.submit(2), await platform.submit(2)
    async with platform.driving():
        await platform.until(old, BatchState.COMPLETED)
        await platform.until(young, BatchState.COMPLETED)
    found = await platform.store.read(platform.tenant, old.id)
    assert found is not None
    await platform.store.update(structs.replace(found[0], ended_at=1.0), found[1])

    async def is_gone() -> bool | None:
        return None if await platform.blobs.stored(platform.tenant, [old.chunks.sha256]) else True

    async with platform.driving():
        await until_found(is_gone)

    assert await platform.blobs.stored(platform.tenant, [young.chunks.sha256])
    with pytest.raises(BlobMissing):
        await platform.results(found[0])


async def test_a_driver_that_dies_is_followed_by_another(platform: Platform) -> None:
    """Nothing is submitted twice: its jobs are found again, and what ended meanwhile is counted."""
    record = await platform.submit(40)
    async with platform.driving():
        told = list(await platform.until_told(40))
    for job in told[:25]:
        await platform.end(job)
    platform.told.clear()
    async with platform.driving():
        await platform.until_told(15)  # those that wait are told of again
        for job in told[25:]:
            await platform.end(job, "bad_output")
        done = await platform.until(record, BatchState.COMPLETED)

    assert done.counts == ItemCounts(succeeded=25, failed=15)
    assert len(set(told)) == 40
    assert set(platform.told) == set(told[25:])


async def test_a_cancellation_goes_on_over_the_death_of_the_driver(platform: Platform) -> None:
    """Also where the batch was cancelled while nobody drove it."""
    record = await platform.submit(30)
    async with platform.driving():
        told = list(await platform.until_told(30))
    await platform.end(told[0])
    await platform.desk.cancel(platform.tenant, record.id)
    async with platform.driving():
        done = await platform.until(record, BatchState.CANCELLED)

    assert done.counts == ItemCounts(succeeded=1, cancelled=29)


async def test_it_shows_what_is_left_while_it_has_the_lease(platform: Platform) -> None:
    """Nothing before and after: another process may have the duty."""
    await platform.submit(3)
    duty = BatchDuty(platform.bus, platform.ground, holder=token(8))
    assert duty.statistics() is None
    task = asyncio.ensure_future(duty.run())
    await platform.until_told(3)

    async def shown() -> BatchDutyStatistics | None:
        found = duty.statistics()
        return found if found is not None and found.driven else None

    found = await until_found(shown)
    assert found.items_left >= 3
    task.cancel()
    await asyncio.wait([task])
    assert duty.statistics() is None


def test_a_batch_expires_a_while_after_its_end() -> None:
    """One that is not over never does."""
    over = batch(state=BatchState.COMPLETED, ended_at=100.0, keep_s=60.0)
    records = [over, batch(state=BatchState.RUNNING, keep_s=60.0)]

    assert expired_batches(records, 160.0) == []
    assert expired_batches(records, 160.1) == [over]
