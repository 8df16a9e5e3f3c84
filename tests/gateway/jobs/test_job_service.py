"""What a submission leaves behind that was refused, or that another one was before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pilotlight_core.model.errors import Conflict, TooMuch, Unavailable
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_gateway.idempotency.memory_key_records import MemoryDoorbell
from pilotlight_gateway.jobs.job_port import StoredJob
from pilotlight_gateway.jobs.job_service import KEPT_S, WAITERS_PER_TENANT, JobService
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from tests.builders.jobs import JOB, dead_job, job
from tests.gateway.http.endpoints.test_jobs import submit
from tests.gateway.world import World, function
from tests.waiting import until

BIG = "x" * 100_000


class Full(MemoryJobs):
    """Has no room."""

    async def create(self, job: JobRecord) -> StoredJob:
        raise Unavailable("no room", code="overloaded")


async def test_a_key_that_is_used_leaves_no_second_input(world: World) -> None:
    """Neither the same one again nor another one: the blob store would fill with what nobody counts."""
    world.deploy(function())
    async with world.client() as client:
        first = await submit(client, key="once", input={"name": BIG})
        kept = dict(world.blobs.kept)
        same = await submit(client, key="once", input={"name": BIG})
        others = [await submit(client, key="once", input={"name": f"{BIG}{number}"}) for number in range(3)]

    assert (first.status_code, same.status_code, {other.status_code for other in others}) == (202, 202, {422})
    assert world.blobs.kept == kept
    assert len(kept) == 1


@pytest.mark.parametrize("name", ["Ada", BIG], ids=["small", "large"])
async def test_what_there_is_no_room_for_leaves_nothing(world: World, name: str) -> None:
    """Neither a record nor a blob, nor room taken."""
    world.deploy(function())
    quota = JobStorageQuota(MemoryQuotaRecords(), limit=200_000, life=KEPT_S, wall=world.wall)
    world.services.jobs = JobService(Full(), quota=quota, blobs=world.blobs, wall=world.wall)
    async with world.client() as client:
        answers = [await submit(client, input={"name": name}) for _ in range(4)]

    assert [answer.json()["code"] for answer in answers] == ["overloaded"] * 4
    assert not world.blobs.kept


async def test_only_so_many_requests_of_a_tenant_listen_for_jobs() -> None:
    """Those beyond wait a moment and look once; others' tenants have their own."""
    store = MemoryJobs()
    desk = JobService(store)
    mine, other = job(), job(tenant="bolt")
    first, _ = [await store.create(one) for one in (mine, other)]
    waits = [asyncio.ensure_future(desk.wait(mine, 60.0)) for _ in range(WAITERS_PER_TENANT + 5)]
    waits.append(asyncio.ensure_future(desk.wait(other, 60.0)))
    await until(lambda: len(store.bells) == WAITERS_PER_TENANT + 1)

    await store.update(jobs.cancelled(mine, 200.0), first.revision)
    *ended, left = waits
    assert {(await wait).state for wait in ended} == {JobState.CANCELLED}
    left.cancel()
    await asyncio.wait([left])
    assert not store.bells


async def test_who_waits_for_a_job_is_answered_when_the_process_ends() -> None:
    """With the job as it is, at once, and so is who comes later."""
    store = MemoryJobs()
    desk = JobService(store)
    mine = job()
    await store.create(mine)
    wait = asyncio.ensure_future(desk.wait(mine, 60.0))
    await until(lambda: store.bells)

    desk.end_waits()

    assert [(await each).state for each in (wait, desk.wait(mine, 60.0))] == [JobState.QUEUED] * 2
    assert not store.bells


class BrokenBells(MemoryJobs):
    """Nobody can wait for a change."""

    @asynccontextmanager
    async def watch(self, tenant: str, job: str) -> AsyncIterator[MemoryDoorbell]:
        async with super().watch(tenant, job):
            yield BrokenDoorbell(asyncio.Event())


class BrokenDoorbell(MemoryDoorbell):
    async def wait(self, seconds: float) -> bool:
        raise Unavailable("the bus is gone")


async def test_a_wait_that_cannot_go_on_is_no_wait_without_pauses() -> None:
    """The caller hears why."""
    store = BrokenBells()
    mine = job()
    await store.create(mine)

    with pytest.raises(Unavailable, match="the bus is gone"):
        await JobService(store).wait(mine, 60.0)
    assert not store.bells


async def test_driving_a_job_again_takes_room_again() -> None:
    """It is kept for longer; where there is none, or it is not dead, nothing is taken and it stays as it is."""
    store = MemoryJobs()
    quota = JobStorageQuota(MemoryQuotaRecords(), limit=100_000, life=60.0, wall=lambda: 200.0)
    desk = JobService(store, quota=quota, keep_s=60.0, wall=lambda: 200.0)
    dead = dead_job(input=b"x" * 40_000)
    await store.create(dead)
    again = await desk.redrive("acme", dead.id)
    assert again.state is JobState.QUEUED
    with pytest.raises(Conflict):
        await desk.redrive("acme", dead.id)

    for number in (3, 4):
        await store.create(dead_job(id=f"{JOB[:-1]}{number}", input=b"x" * 40_000))
    await desk.redrive("acme", f"{JOB[:-1]}3")
    with pytest.raises(TooMuch, match="room for jobs is used up"):
        await desk.redrive("acme", f"{JOB[:-1]}4")
    left = await desk.find("acme", f"{JOB[:-1]}4")
    assert left is not None
    assert left.state is JobState.FAILED
