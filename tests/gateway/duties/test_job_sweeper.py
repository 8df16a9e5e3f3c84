"""The sweeper finds the jobs that no message names, and forgets the blobs of those that are forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.blobs import BlobsDown, MemoryBlobs
from pilotlight_core.host.blobs.blob_port import BlobInfo
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobNote, JobsStored
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import BlobRef, JobRecord, JobState, RunnerIdentity
from pilotlight_gateway.duties.job_sweeper import (
    FORGET_AFTER_S,
    PUBLISHED_WITHIN_S,
    JobSweeper,
    JobWatchlist,
    WatchedJob,
)
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_payloads import store_payload
from tests.builders.jobs import job
from tests.waiting import until


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="sweeper") as bus:
        yield bus


class Fickle(MemoryBlobs):
    """Cannot be listed `failures` times."""

    failures = 0

    async def listed(self, tenant: str | None = None) -> AsyncIterator[BlobInfo]:
        if self.failures:
            self.failures -= 1
            raise BlobsDown("gone")
        async for one in super().listed(tenant):
            yield one


def seen(record: JobRecord) -> WatchedJob:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=WatchedJob)


def test_a_job_that_nobody_tells_of_is_missed_after_a_while() -> None:
    """Not at once: its message may be on its way. What has ended is not missed."""
    watchlist = JobWatchlist("local")
    watchlist.see("acme.a", seen(job(id="a")), 100.0)
    watchlist.see("acme.b", seen(job(id="b", run_at=500.0)), 100.0)
    watchlist.see("acme.c", seen(job(id="c")), 100.0)
    flow = subjects.job_flow("local", "acme:shop.hello", "acme", "standard")

    assert watchlist.missing(set(), 100.0) == {}
    assert not watchlist.old(100.0)
    at = 100.0 + PUBLISHED_WITHIN_S
    assert watchlist.old(at)
    put_off = JobNote("b", 500.0, "acme:shop.hello", "ver_1")
    assert watchlist.missing({"c"}, at) == {flow: [("acme.a", JobNote("a")), ("acme.b", put_off)]}
    watchlist.see("acme.a", seen(jobs.expired(job(id="a"), 2_000.0)), 101.0)
    watchlist.gone("acme.b")
    assert watchlist.missing({"c"}, at) == {}
    assert len(watchlist) == 1


def test_jobs_are_counted() -> None:
    """Those that wait, run, and are dead for as long as they are kept; and how long the oldest could have begun."""
    watchlist = JobWatchlist("local")
    begun = jobs.started(job(id="b"), RunnerIdentity("one", "one-a"), "run", 1, 150.0)
    assert begun is not None
    watchlist.see("acme.a", seen(job(id="a")), 100.0)
    watchlist.see("acme.b", seen(begun), 150.0)
    watchlist.see("acme.c", seen(job(id="c", run_at=500.0)), 100.0)
    for name in ("d", "e"):
        watchlist.see(f"acme.{name}", seen(jobs.expired(job(id=name, keep_s=60.0), 160.0)), 160.0)
    watchlist.see("acme.e", seen(job(id="e")), 170.0)  # driven again

    told = watchlist.statistics(200.0, told_again=7)
    assert (told.queued, told.running, told.dead, told.oldest, told.told_again) == (3, 1, 1, 100.0, 7)
    assert watchlist.statistics(221.0).dead == 0


def test_blobs_go_when_the_record_is_long_gone() -> None:
    """Once; and not those of a job that was driven again meanwhile."""
    watchlist = JobWatchlist("local")
    blob = BlobRef(sha256="0" * 64, size=1)
    for name in ("a", "b"):
        ended = jobs.expired(job(id=name, input_blob=blob, keep_s=60.0), 2_000.0)
        watchlist.see(f"acme.{name}", seen(ended), 2_000.0)
    watchlist.see("acme.b", seen(job(id="b", input_blob=blob)), 2_001.0)

    assert watchlist.forgettable(2_060.0) == []
    assert watchlist.forgettable(2_060.0 + FORGET_AFTER_S) == [("acme.a", "acme", ("0" * 64,))]
    assert watchlist.forgettable(1e9) == []


async def test_on_a_real_bus_lost_messages_are_made_again(bus: Bus) -> None:
    """Of a stored job that nobody told of; not of one that has ended, or that is told of."""
    tenant, region, store = token(), f"r{token(8)}", BusJobs(bus)
    names = [f"call_{region}_1_{token()}" for _ in range(3)]
    lost, ended, told = [job(id=name, tenant=tenant, function=f"{tenant}:shop.hello") for name in names]
    for one in (lost, told):
        await store.create(one)
    found = await store.create(ended)
    await store.update(jobs.cancelled(ended, 200.0), found.revision)
    flow = subjects.job_flow(region, told.function, tenant, "standard")
    await bus.store(flow, JobsStored(jobs=(JobNote(told.id),)), id=token())

    duty = asyncio.ensure_future(JobSweeper(bus, MemoryBlobs(), region=region, holder=token()).run())
    try:
        async with asyncio.timeout(30):
            async for stored in bus.read_stream(subjects.JOB_STREAM, flow, follow=True):
                if any(note.id == lost.id for note in stored.message.jobs):
                    break
    finally:
        duty.cancel()
        await asyncio.wait([duty])
    notes = [n.id async for one in bus.read_stream(subjects.JOB_STREAM, flow) for n in one.message.jobs]
    assert sorted(notes) == sorted([told.id, lost.id])
    assert JobState.CANCELLED.terminal


def test_what_could_not_be_forgotten_is_forgotten_later() -> None:
    """The store of blobs was away: it is given again, unless the job was driven anew."""
    watchlist = JobWatchlist("local")
    watchlist.postpone("acme.a", "acme", ("0" * 64,), 100.0)
    watchlist.postpone("acme.b", "acme", ("1" * 64,), 100.0)
    watchlist.see("acme.b", seen(job(id="b")), 50.0)

    assert watchlist.forgettable(99.0) == []
    assert watchlist.forgettable(100.0) == [("acme.a", "acme", ("0" * 64,))]


async def test_what_cannot_be_read_holds_no_sweep_up(bus: Bus) -> None:
    """A record of a version to come, in place of one that waited to be told of: others are told of all the same."""
    tenant, region, store = token(), f"r{token(8)}", BusJobs(bus)
    odd, lost = [job(id=f"call_{region}_1_{token()}", tenant=tenant, function=f"{tenant}:shop.hello") for _ in range(2)]
    for one in (odd, lost):
        await store.create(one)
    duty = JobSweeper(bus, MemoryBlobs(), region=region, holder=token())
    watchlist = JobWatchlist(region)
    for one in (odd, lost):
        watchlist.see(one.key, seen(one), 1.0)
    await bus.kv(subjects.JOB_BUCKET).put(odd.key, b"\xc1 of a version to come")

    await duty.republish(watchlist)

    flow = subjects.job_flow(region, lost.function, tenant, "standard")
    notes = [n.id async for one in bus.read_stream(subjects.JOB_STREAM, flow) for n in one.message.jobs]
    assert notes == [lost.id]
    assert len(watchlist) == 1


async def test_blobs_go_once_their_store_can_be_reached(bus: Bus) -> None:
    """Nothing is forgotten of what is to be forgotten."""
    tenant, blobs = token(), MemoryBlobs()
    duty, watchlist = JobSweeper(bus, blobs, region="local", holder=token()), JobWatchlist("local")
    for digit in "01":
        blobs.kept[tenant, digit * 64] = b""
        watchlist.postpone(f"{tenant}.{digit}", tenant, (digit * 64,), 1.0)
    blobs.down = True
    with pytest.raises(BlobsDown):
        await duty.forget(watchlist, 100.0)
    blobs.down = False
    await duty.forget(watchlist, 100.0 + FORGET_AFTER_S)
    assert not blobs.kept


async def test_what_nobody_needs_is_searched_for_beside_the_sweeps(bus: Bus) -> None:
    """Once the duty begins, and again a little later where the store could not be reached."""
    blobs, tenant = Fickle(), token()
    for owner in (f"call_{token()}", f"batch_{token()}"):
        await store_payload(blobs, tenant, owner, "input", b"small")
    blobs.failures = 1
    duty = asyncio.ensure_future(JobSweeper(bus, blobs, region="local", holder=token(), search_again_s=0.01).run())
    try:
        await until(lambda: not blobs.kept)
    finally:
        duty.cancel()
        await asyncio.wait([duty])
    assert blobs.failures == 0
