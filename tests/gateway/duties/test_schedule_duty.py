"""The duty of schedules on a real bus: each tick has one job, whoever stores it and whatever is deployed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobNote
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.spec import AppRecord, Schedule, VersionRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_gateway.duties.schedule_duty import ScheduleDuty, TickDependencies
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.schedules.tick_jobs import UNSCHEDULED, tick_job_id
from tests.gateway.schedules.scheduled_apps import HOURLY, app_record, scheduled_version
from tests.waiting import until, until_found

HOUR = 3_600
AHEAD = HOUR - 60.0
"""A minute before the first tick."""


class Clock:
    """A tenant with the app `etl`, and a clock that a test sets."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.tenant = f"t{token(8)}"
        self.store = BusJobs(bus)
        self.notes: list[JobNote] = []
        self.at = AHEAD
        self.ground = TickDependencies(jobs=self.store, publish=self.note, region="local", wall=lambda: self.at)

    def note(self, flow: str, note: JobNote) -> None:
        if f".{self.tenant}." in f".{flow}.":
            self.notes.append(note)

    async def deploy(self, *deploys: tuple[float, str]) -> None:
        """The app with its history; nothing: it is deleted."""
        kv, key = self.bus.kv(REGISTRY_BUCKET), f"app.{self.tenant}.etl"
        if deploys:
            await kv.put(key, msgspec.msgpack.encode(app_record(*deploys, tenant=self.tenant)))
        else:
            await kv.delete(key)

    async def put_version(self, *schedules: Schedule, name: str = "ver_1") -> VersionRecord:
        """A version; the test's own name for it is not the one that it is stored under."""
        version = scheduled_version(*schedules, tenant=self.tenant, name=name)
        await self.bus.kv(REGISTRY_BUCKET).put(f"version.{name}", msgspec.msgpack.encode(version))
        return version

    async def wake(self, at: float) -> None:
        """Let the clock show another time; a change in the registry makes the duty look at it."""
        self.at = at
        app = AppRecord(tenant=self.tenant, app="wake", revision=1, functions={})
        await self.bus.kv(REGISTRY_BUCKET).put(f"app.{self.tenant}.wake", msgspec.msgpack.encode(app))

    async def job(self, tick: int) -> JobRecord | None:
        name = tick_job_id("local", self.tenant, f"{self.tenant}:etl.nightly", tick)
        found = await self.store.read(self.tenant, name)
        return None if found is None else found.job

    async def stands(self, tick: int, check: Callable[[JobRecord], bool] = lambda _: True) -> JobRecord:
        """The job of a tick, once it is as it should be."""

        async def look() -> JobRecord | None:
            job = await self.job(tick)
            return job if job is not None and check(job) else None

        return await until_found(look)

    async def change(self, tick: int, change: Callable[[JobRecord], JobRecord]) -> None:
        found = await self.store.read(self.tenant, (await self.stands(tick)).id)
        assert found is not None
        await self.store.update(change(found.job), found.revision)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ScheduleDuty]:
        """The duty, which nobody else has."""
        duty = ScheduleDuty(self.bus, self.ground, holder=token(8))
        task = asyncio.ensure_future(duty.run())
        try:
            yield duty
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture
def clock(bus: Bus) -> Clock:
    return Clock(bus)


def stored(duty: ScheduleDuty, what: str) -> int:
    """How many jobs it says that it has stored."""
    statistics = duty.statistics()
    return statistics.stored.get(what, 0) if statistics is not None else 0


async def test_the_next_tick_is_stored_ahead_and_told(clock: Clock) -> None:
    """Then the one after it, each once."""
    name = f"ver_{token(12)}"
    await clock.put_version(HOURLY, name=name)
    await clock.deploy((0.0, name))
    async with clock.running() as duty:
        first = await clock.stands(HOUR)
        await clock.wake(2 * HOUR - 60.0)
        second = await clock.stands(2 * HOUR)
        await until(lambda: stored(duty, "ahead") >= 2)
        statistics = duty.statistics()

    assert (first.run_at, first.version, first.state) == (HOUR, name, JobState.QUEUED)
    assert [(note.id, note.run_at) for note in clock.notes if note.run_at] == [(first.id, HOUR), (second.id, 2 * HOUR)]
    assert statistics is not None
    assert statistics.methods >= 1
    assert duty.statistics() is None


async def test_whoever_comes_after_finds_what_stands(clock: Clock) -> None:
    """A job that has run is not stored again, and one that waits is told of again."""
    name = f"ver_{token(12)}"
    await clock.put_version(HOURLY, name=name)
    await clock.deploy((0.0, name))
    async with clock.running():
        await clock.stands(HOUR)
    await clock.change(HOUR, lambda job: jobs.succeeded(job, HOUR + 1.0))
    clock.at = 2 * HOUR - 60.0
    async with clock.running():
        waits = await clock.stands(2 * HOUR)
    clock.notes.clear()
    async with clock.running():
        await until_found(_told(clock, waits.id))

    assert (await clock.stands(HOUR)).state is JobState.SUCCEEDED
    assert {note.id for note in clock.notes} == {waits.id}


def _told(clock: Clock, job: str) -> Callable[[], Awaitable[bool | None]]:
    async def look() -> bool | None:
        return True if any(note.id == job for note in clock.notes) else None

    return look


async def test_of_missed_ticks_the_last_one_is_stored(clock: Clock) -> None:
    """Nobody had the duty for three hours."""
    name = f"ver_{token(12)}"
    await clock.put_version(HOURLY, name=name)
    await clock.deploy((0.0, name))
    clock.at = 3 * HOUR + 60.0
    async with clock.running() as duty:
        late = await clock.stands(3 * HOUR)
        await until(lambda: stored(duty, "late") >= 1)

    assert late.expires_at == 4 * HOUR
    assert [await clock.job(tick) for tick in (HOUR, 2 * HOUR)] == [None, None]


async def test_a_clock_that_was_ahead_costs_no_tick(clock: Clock) -> None:
    """It was wrong by nine hours, and is set right: the ticks of these hours come, each once."""
    name = f"ver_{token(12)}"
    await clock.put_version(HOURLY, name=name)
    await clock.deploy((0.0, name))
    clock.at = 10 * HOUR - 60.0
    async with clock.running():
        too_early = await clock.stands(10 * HOUR)
        await clock.wake(AHEAD)
        right = await clock.stands(HOUR)
        await clock.wake(2 * HOUR - 60.0)
        await clock.stands(2 * HOUR)
        await clock.wake(10 * HOUR - 60.0)
        await clock.stands(9 * HOUR)

    assert (right.run_at, right.state) == (HOUR, JobState.QUEUED)
    assert await clock.stands(10 * HOUR) == too_early


async def test_a_stop_withdraws_and_the_next_deploy_restores(clock: Clock) -> None:
    """The tick is then what it was; a person's cancellation is nobody's to take back."""
    name = f"ver_{token(12)}"
    await clock.put_version(HOURLY, name=name)
    await clock.deploy((0.0, name))
    async with clock.running():
        before = await clock.stands(HOUR)
        await clock.deploy((0.0, name), (AHEAD, ""))
        gone = await clock.stands(HOUR, lambda job: job.state is JobState.CANCELLED)
        await clock.deploy((0.0, name), (AHEAD, ""), (AHEAD + 1.0, name))
        assert await clock.stands(HOUR, lambda job: job.state is JobState.QUEUED) == before
        await clock.change(HOUR, lambda job: jobs.cancelled(job, AHEAD))
        await clock.wake(HOUR + 60.0)
        await clock.wake(2 * HOUR - 60.0)
        await clock.stands(2 * HOUR)

    assert gone.error is not None
    assert gone.error.code == UNSCHEDULED
    assert (await clock.stands(HOUR)).state is JobState.CANCELLED


async def test_another_schedule_withdraws_what_it_has_not(clock: Clock) -> None:
    """A version that has the same tick leaves its job alone: it is bound when it begins. A deleted app has none."""
    hourly, same, half_past = (f"ver_{token(12)}" for _ in range(3))
    await clock.put_version(HOURLY, name=hourly)
    await clock.put_version(Schedule(cron="0 */1 * * *"), name=same)
    await clock.put_version(Schedule(cron="58 * * * *"), name=half_past)
    await clock.deploy((0.0, hourly))
    clock.at = HOUR - 180.0
    async with clock.running():
        await clock.stands(HOUR)
        await clock.deploy((0.0, hourly), (clock.at, same))
        await clock.wake(clock.at)
        assert (await clock.stands(HOUR)).state is JobState.QUEUED
        await clock.deploy((0.0, hourly), (clock.at, same), (clock.at, half_past))
        await clock.stands(HOUR, lambda job: job.state is JobState.CANCELLED)
        await clock.stands(HOUR - 120)
        await clock.deploy()
        await clock.stands(HOUR - 120, lambda job: job.state is JobState.CANCELLED)


async def test_what_cannot_be_read_stands_in_nobodys_way(clock: Clock) -> None:
    """An app, or a version, of a release to come."""
    name = f"ver_{token(12)}"
    await clock.bus.kv(REGISTRY_BUCKET).put(f"app.{clock.tenant}.odd", b"\xc1")
    await clock.bus.kv(REGISTRY_BUCKET).put(f"version.ver_{token(12)}", b"\xc1")
    await clock.put_version(HOURLY, name=name)
    await clock.deploy((0.0, name))
    async with clock.running():
        assert (await clock.stands(HOUR)).version == name
