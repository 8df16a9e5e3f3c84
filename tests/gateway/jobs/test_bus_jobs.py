"""Jobs on a real bus: compare-and-set, listing from the end, forgetting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotlight_core.bus import Bus, WrongRevision, connect
from pilotlight_core.bus.streams import bucket_stream
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState, RunnerIdentity
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_gateway.jobs import bus_jobs
from pilotlight_gateway.jobs.bucket_headroom import Headroom
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_port import JobStore
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from tests.builders.jobs import dead_job, job
from tests.waiting import until, until_found


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="jobs") as bus:
        yield bus


@pytest.fixture(params=["bus", "memory"])
def store(request: pytest.FixtureRequest, bus: Bus) -> JobStore:
    """The real one and the one in memory: what holds for one holds for the other."""
    return BusJobs(bus) if request.param == "bus" else MemoryJobs()


def made(tenant: str, **more: object) -> JobRecord:
    return job(id=f"call_local_1_{token()}", tenant=tenant, **more)


async def test_one_creates_and_one_changes(store: JobStore) -> None:
    """Whoever comes second gets what is there, or is told that it has changed."""
    tenant = token()
    first = made(tenant)
    created = await store.create(first)
    assert created.job == first
    other = msgspec.structs.replace(first, created_at=200.0)
    assert (await store.create(other)).job == first

    done = jobs.expired(first, 2_000.0)
    revision = await store.update(done, created.revision)
    with pytest.raises(WrongRevision):
        await store.update(jobs.cancelled(first, 2_000.0), created.revision)
    found = await store.read(tenant, first.id)
    assert found is not None
    assert found == (done, revision)
    assert await store.read(token(), first.id) is None


async def test_a_write_whose_confirmation_was_lost_is_its_own(bus: Bus) -> None:
    """Who writes the same again learns under which revision it stands."""
    store, new = BusJobs(bus), made(token())
    created = await store.create(new)
    assert await store.create(new) == created

    done = jobs.expired(new, 2_000.0)
    revision = await store.update(done, created.revision)
    assert await store.update(done, created.revision) == revision


async def test_pages_go_backwards_and_are_whole(store: JobStore) -> None:
    """However the tenants' records are mixed: each job of the tenant once, the last changed first."""
    tenant, other = token(), token()
    names = []
    for number in range(40):
        names.append((await store.create(made(tenant, state=JobState.QUEUED, run_at=float(number)))).job.id)
        await store.create(made(other))
    seen: list[str] = []
    before = 0
    while True:
        page = await store.page(tenant, limit=7, before=before, wanted=lambda one: one.run_at != 3.0)
        seen += [one.id for one in page.jobs]
        before = page.before
        if not before:
            break
    assert seen == [name for name in reversed(names) if name != names[3]]


async def test_thick_and_thin_windows(bus: Bus) -> None:
    """A window that holds too much is made smaller, one that holds little is made larger."""
    tenant, store = token(), BusJobs(bus)
    first = (await store.create(made(tenant))).job
    for _ in range(bus_jobs.WINDOW):
        await store.create(made(token()))
    page = await store.page(tenant, limit=1)
    assert [one.id for one in page.jobs] == [first.id]


async def test_a_change_rings(store: JobStore) -> None:
    """Whoever waits for a job hears of it."""
    tenant = token()
    created = await store.create(made(tenant))
    async with store.watch(tenant, created.job.id) as bell:
        await store.update(jobs.expired(created.job, 2_000.0), created.revision)
        assert await bell.wait(10.0)


async def test_what_has_ended_is_forgotten_after_its_time(bus: Bus) -> None:
    """By the server, a second after its end at the earliest; what has not ended stays."""
    tenant, store = token(), BusJobs(bus)
    lives = await store.create(made(tenant, keep_s=0.1))
    created = await store.create(made(tenant, keep_s=0.1))
    dead = dead_job(id=created.job.id, tenant=tenant, keep_s=0.1, created_at=created.job.created_at)
    await store.update(dead, created.revision)

    async def is_forgotten() -> bool:
        return await store.read(tenant, created.job.id) is None

    await until_found(is_forgotten)
    assert await store.read(tenant, lives.job.id) is not None


async def test_who_lives(bus: Bus) -> None:
    """Whoever holds the lease of its name, as this very process."""
    store, name = BusJobs(bus), token()
    async with bus.lease(f"gateway.{name}", name, data=b"here-1"):
        assert await store.is_alive(RunnerIdentity(name, "here-1"))
        assert not await store.is_alive(RunnerIdentity(name, "here-0"))
    assert not await store.is_alive(RunnerIdentity(token(), "x"))


async def test_all_have_the_same_secret(bus: Bus) -> None:
    """Whoever asks first makes it; those that ask at the same time meet it."""
    found = await asyncio.gather(*(BusJobs(bus).secret() for _ in range(4)))
    assert len(set(found)) == 1
    assert len(found[0]) == 32


async def test_a_list_holds_no_inputs_and_results(store: JobStore) -> None:
    """Nobody is told them there, and a page of them would be large."""
    tenant = token()
    created = await store.create(made(tenant, input=b"in"))
    await store.update(jobs.succeeded(created.job, 200.0, output=b"out"), created.revision)
    (listed,) = (await store.page(tenant, limit=10)).jobs
    assert (listed.id, listed.input, listed.output) == (created.job.id, b"", b"")


async def test_how_full_the_bucket_is_is_known(bus: Bus) -> None:
    """As a part of what it may hold."""
    stream = bucket_stream(JOB_BUCKET)
    await BusJobs(bus).create(made(token()))
    before = await bus.jetstream.filled(stream)
    await BusJobs(bus).create(made(token(), input=b"x" * 100_000))
    assert 0.0 < before < await bus.jetstream.filled(stream) < 0.5


async def test_what_is_left_of_a_full_bucket_is_for_those_that_are_in_it(bus: Bus) -> None:
    """No new job is taken; one that is there ends."""

    async def full() -> float:
        return 0.95

    headroom = Headroom(full)
    store = BusJobs(bus, headroom=headroom)
    created = await store.create(made(token()))  # nobody knows yet
    await until(lambda: not headroom.looking)
    with pytest.raises(Unavailable, match="room for jobs is used up"):
        await store.create(made(token()))
    await store.update(jobs.expired(created.job, 2_000.0), created.revision)
