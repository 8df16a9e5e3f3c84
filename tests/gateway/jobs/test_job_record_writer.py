"""A record is written where nobody has written meanwhile, and its reader learns who has."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.bus import BusDown, BusTimeout
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState, RunnerIdentity
from pilotlight_gateway.jobs.job_port import StoredJob
from pilotlight_gateway.jobs.job_record_writer import JobRecordWriter
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from tests.builders.jobs import JOB, job

ME, OTHER = RunnerIdentity("one", "one-a"), RunnerIdentity("two", "two-a")


def begun(record: JobRecord, runner: RunnerIdentity = ME) -> JobRecord:
    """The record of a run."""
    made = jobs.started(record, runner, "call_run", 1, 150.0)
    assert made is not None
    return made


def done(record: JobRecord) -> JobRecord:
    return jobs.succeeded(record, 200.0, output=b"\x01")


async def reading(store: MemoryJobs, *, running: bool = False) -> JobRecordWriter:
    """A writer that has read its job."""
    found = await store.create(job())
    if running:
        await store.update(begun(found.job), found.revision)
    writer = JobRecordWriter(store, "acme", JOB)
    assert await writer.read()
    return writer


async def test_a_job_that_is_not_there_has_ended() -> None:
    """Nothing is left to do of it."""
    writer = JobRecordWriter(MemoryJobs(), "acme", JOB)

    assert not await writer.read()
    assert writer.ended


async def test_what_was_read_is_written_over() -> None:
    """Again and again, each time over the last write."""
    store = MemoryJobs()
    writer = await reading(store)
    ended = []
    for change in (begun, done):
        assert await writer.write(change(writer.job))
        ended.append(writer.ended)

    assert ended == [False, True]
    assert [one.state for one in store.writes] == [JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED]


async def test_who_was_first_is_read_by_a_write_and_not_by_a_replacement() -> None:
    """`replace` leaves what was read, for whoever must not act on more than that."""
    store = MemoryJobs()
    one, two = await reading(store), JobRecordWriter(store, "acme", JOB)
    await two.read()
    assert await two.write(begun(two.job, OTHER))

    assert not await one.replace(begun(one.job))
    assert one.job.state is JobState.QUEUED
    assert not await one.write(begun(one.job))
    assert one.job.runner == OTHER


async def test_while_the_bus_is_away_reading_waits() -> None:
    """`read` raises, `refresh` goes on."""

    class Away(MemoryJobs):
        left = 2

        async def read(self, tenant: str, job: str) -> StoredJob | None:
            if self.left:
                self.left -= 1
                raise BusDown("away")
            return await super().read(tenant, job)

    store = Away()
    await store.create(job())
    writer = JobRecordWriter(store, "acme", JOB)
    with pytest.raises(BusDown):
        await writer.read()

    assert await writer.refresh()
    assert writer.job.id == JOB


async def test_an_end_is_written_over_a_change_that_leaves_the_run_ours() -> None:
    """Its cancellation was wanted meanwhile: it has ended all the same."""
    store = MemoryJobs()
    writer = await reading(store, running=True)
    found = await store.read("acme", JOB)
    assert found is not None
    await store.update(jobs.cancel_wanted(found.job, 160.0), found.revision)

    assert await writer.write_end(done)
    assert writer.job.state is JobState.SUCCEEDED


async def test_an_end_is_not_written_over_another_run() -> None:
    """The job was taken from us: who has it now, or how it ended, is known then."""
    store = MemoryJobs()
    writer = await reading(store, running=True)
    found = await store.read("acme", JOB)
    assert found is not None
    await store.update(jobs.interrupted(found.job, 160.0, "taken for dead"), found.revision)

    assert not await writer.write_end(done)
    assert writer.job.state is JobState.FAILED


async def test_an_end_of_a_job_that_is_forgotten_is_given_up() -> None:
    """There is nothing to write over, and never will be."""
    store = MemoryJobs()
    writer = await reading(store, running=True)
    store._kept.clear()

    async def update(job: JobRecord, revision: int) -> int:
        raise BusTimeout("no answer")

    store.update = update  # type: ignore[method-assign]
    assert not await writer.write_end(done)


async def test_an_end_is_still_written_when_its_writer_is_cancelled() -> None:
    """A result that has arrived would be lost as an interruption."""

    class Slow(MemoryJobs):
        begun = asyncio.Event()
        go_on = asyncio.Event()

        async def update(self, job: JobRecord, revision: int) -> int:
            if job.state is JobState.SUCCEEDED:
                self.begun.set()
                await self.go_on.wait()
            return await super().update(job, revision)

    store = Slow()
    writer = await reading(store, running=True)
    writing = asyncio.ensure_future(writer.write_end(done))
    await store.begun.wait()
    writing.cancel()
    await asyncio.sleep(0)
    store.go_on.set()
    await asyncio.wait([writing])

    assert writing.cancelled()
    assert store.writes[-1].state is JobState.SUCCEEDED
