"""A start is written before its run is sent; what was written and not sent is known as such."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from pilotlight_core.bus import BusTimeout, WrongRevision
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.call_messages import Run
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState, RunnerIdentity
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_record_writer import JobRecordWriter
from pilotlight_gateway.jobs.job_start import JobStart, StartProgress, UnsentStart
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from tests.builders import calls as builders
from tests.builders.jobs import JOB, job
from tests.builders.specs import version_record

ME, OTHER = RunnerIdentity("one", "one-a"), RunnerIdentity("two", "two-a")


@dataclass(kw_only=True)
class Site:
    """A job that was read, its start, and what came of each grant."""

    store: MemoryJobs = field(default_factory=MemoryJobs)
    limits: Limits = NO_LIMITS
    goes: list[bool] = field(default_factory=list)
    taken_back: bool = False
    """Whether the home has taken the grant back by now."""
    first_sent: int = 0
    start: JobStart = field(init=False)

    async def begin(self) -> JobStart:
        policy = policy_of(EffectiveLimits(tenant=self.limits, function=NO_LIMITS), job().function)
        self.limiter = MemoryLimiter(lambda *_: policy)
        await self.store.create(job())
        record = JobRecordWriter(self.store, "acme", JOB)
        await record.read()
        quota = JobStorageQuota(MemoryQuotaRecords(), limit=10**9, life=1_000.0, wall=lambda: 200.0)
        self.start = JobStart(
            record,
            JobPermits(limits=self.limiter, costs=Estimates()).of(job(), version_record()),
            quota,
            me=ME,
            wall=lambda: 200.0,
            on_first_sent=self.count,
        )
        return self.start

    def count(self) -> None:
        self.first_sent += 1

    async def grant(self, number: int) -> None:
        """The call is granted; what is to happen before it is sent happens."""

        def go(*, allowed: bool) -> bool:
            self.goes.append(allowed)
            return allowed and not self.taken_back

        self.start.open_gate(run(number), go)
        await self.start.settled()

    async def record(self) -> JobRecord:
        found = await self.store.read("acme", JOB)
        assert found is not None
        return found.job


def run(number: int) -> Run:
    """The `number`th grant of the call."""
    return builders.run("call_run", number, gateway="one-a", home="one-a")


async def test_a_start_is_written_and_then_sent() -> None:
    """Turned away and granted again it is the same attempt, and was first sent once."""
    site = Site()
    start = await site.begin()
    await site.grant(1)
    await site.grant(2)

    assert site.goes == [True, True]
    assert start.progress == StartProgress(sent=True)
    assert site.first_sent == 1
    record = await site.record()
    assert (record.state, record.runner, record.run, record.attempts) == (JobState.RUNNING, ME, "call_run", 1)


async def test_who_loses_the_record_sends_nothing() -> None:
    """Another gateway has written its start."""
    site = Site()
    start = await site.begin()
    found = await site.store.read("acme", JOB)
    assert found is not None
    theirs = jobs.started(found.job, OTHER, "call_theirs", 1, 150.0)
    assert theirs is not None
    await site.store.update(theirs, found.revision)
    await site.grant(1)

    assert site.goes == [False]
    assert start.progress == StartProgress(unsent="call_run")
    assert (await site.record()).runner == OTHER
    assert await start.find_unsent() is UnsentStart.LOST


class Overwritten(MemoryJobs):
    """Somebody wants a job's end as soon as its start is written, before that is confirmed."""

    async def update(self, job: JobRecord, revision: int) -> int:
        revision = await super().update(job, revision)
        if job.state is JobState.RUNNING:
            await super().update(jobs.cancel_wanted(job, 200.0), revision)
            raise WrongRevision("somebody else was first")
        return revision


async def test_a_start_that_stands_under_a_wish_to_cancel_is_known_as_unsent() -> None:
    """Else the job would be thought to run for as long as its gateway lives."""
    site = Site(store=Overwritten())
    start = await site.begin()
    await site.grant(1)

    assert site.goes == [False]
    assert await start.find_unsent() is UnsentStart.STANDS


async def test_what_the_limits_hold_back_is_not_written() -> None:
    """It says for how long."""
    site = Site(limits=Limits(concurrency=1))
    start = await site.begin()
    held = await site.limiter.admit("acme", job().function, site.limiter.policy("acme", job().function), 0.0)
    await site.grant(1)

    assert site.goes == [False]
    assert start.progress.held_s > 0.0
    assert (await site.record()).state is JobState.QUEUED
    held.end(0.0)
    await site.grant(2)
    assert start.progress == StartProgress(sent=True)


async def test_a_start_whose_grant_was_taken_back_is_found() -> None:
    """It stands in the record, and nothing runs; sent after all with the next grant, it is none any more."""
    site = Site(taken_back=True)
    start = await site.begin()
    await site.grant(1)
    assert start.progress == StartProgress(unsent="call_run")
    assert await start.find_unsent() is UnsentStart.STANDS

    site.taken_back = False
    await site.grant(2)
    assert start.progress == StartProgress(sent=True)


async def test_a_start_that_was_not_confirmed_never_comes_to_stand_there() -> None:
    """Once that was looked for: the late write would meet another revision."""

    class Unconfirmed(MemoryJobs):
        late: tuple[JobRecord, int] | None = None

        async def update(self, job: JobRecord, revision: int) -> int:
            if job.state is JobState.RUNNING and self.late is None:
                self.late = (job, revision)
                raise BusTimeout("no answer")
            return await super().update(job, revision)

    store = Unconfirmed()
    site = Site(store=store)
    start = await site.begin()
    await site.grant(1)
    assert site.goes == [False]
    assert start.progress.unsent == "call_run"

    assert await start.find_unsent() is UnsentStart.NEVER
    assert store.late is not None
    with pytest.raises(WrongRevision):
        await MemoryJobs.update(store, *store.late)


async def test_after_its_gateway_has_gone_a_start_that_is_not_sent_is_taken_back() -> None:
    """Nobody else would: the next home would wait for a runner that lives and runs nothing."""
    site = Site(taken_back=True)
    start = await site.begin()
    start.abandon()
    await site.grant(1)

    record = await site.record()
    assert (record.state, record.attempts, record.runner) == (JobState.QUEUED, 0, None)


async def test_a_start_that_is_written_lifts_the_limit_of_its_wait() -> None:
    """From then on the function's own timeout holds."""
    site = Site()
    start = await site.begin()
    async with asyncio.timeout(60.0) as start.time_limit:
        await site.grant(1)
        assert start.time_limit.when() is None


async def test_whatever_breaks_a_start_gives_the_grant_back() -> None:
    """A bug, too: the home has other use for it."""

    class Broken(MemoryJobs):
        async def update(self, job: JobRecord, revision: int) -> int:
            raise ZeroDivisionError("a bug")

    site = Site(store=Broken())
    start = await site.begin()
    await site.grant(1)

    assert site.goes == [False]
    assert start.progress.unsent == "call_run"
