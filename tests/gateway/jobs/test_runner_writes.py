"""Writes of a runner that are lost, late or unconfirmed: what others made of its job meanwhile stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest

from pilotlight_core.bus import BusTimeout, WrongRevision
from pilotlight_core.model.errors import ContainerDied
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.jobs.job_port import StoredJob
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from tests.builders import calls as builders
from tests.gateway.jobs.test_job_runner import ME, OTHER, Bench, Calls
from tests.gateway.world import World
from tests.waiting import until


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world=world)


@dataclass(kw_only=True)
class Cut(MemoryJobs):
    """Whose writes of a kind go unanswered once, and what others do meanwhile."""

    state: JobState
    """A write of this one is lost, or its answer is."""
    stored: bool = False
    """Whether it is written all the same."""
    late: bool = False
    """Whether it is written after it was read that it is not."""
    deaf: int = 0
    """How many reads after it go unanswered as well."""
    meanwhile: Callable[[JobRecord], JobRecord | None] = lambda _: None
    """What another process makes of the record."""
    _lost: tuple[JobRecord, int] | None = None

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        if self._lost is not None and self.deaf:
            self.deaf -= 1
            raise BusTimeout("no answer")
        found = await super().read(tenant, job)
        if self._lost is not None and self.late:
            self.late = False
            await super().update(*self._lost)
        return found

    async def update(self, job: JobRecord, revision: int) -> int:
        if job.state is not self.state or self._lost is not None:
            return await super().update(job, revision)
        self._lost = (job, revision)
        if self.stored:
            await super().update(job, revision)
        there = self._kept[job.key]
        if (other := self.meanwhile(there.job)) is not None:
            await super().update(other, there.revision)
        raise BusTimeout("no answer")


@pytest.mark.parametrize("idempotent", [False, True], ids=["dead", "runs elsewhere"])
async def test_who_was_taken_for_dead_while_the_bus_was_away_loses_the_result(bench: Bench, idempotent: bool) -> None:
    """What others made of the job meanwhile stands: it is dead, or runs under another start."""

    def taken_over(record: JobRecord) -> JobRecord:
        lost = jobs.interrupted(record, 200.0, "taken for dead")
        return jobs.started(lost, OTHER, "call_other", 1, 300.0) or lost

    bench.store = Cut(state=JobState.SUCCEEDED, meanwhile=taken_over)
    await bench.put(idempotent=idempotent)
    assert await bench.run() == (201.0 if idempotent else None)
    after = await bench.now()
    assert after.state is (JobState.RUNNING if idempotent else JobState.FAILED)
    assert after.output == b""


async def test_an_end_whose_confirmation_was_lost_is_written_once(bench: Bench) -> None:
    """It stands there, so nothing is written over it."""
    bench.store = Cut(state=JobState.SUCCEEDED, stored=True)
    await bench.put()
    assert await bench.run() is None
    assert [one.state for one in bench.store.writes] == [JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED]


@pytest.mark.parametrize(("stored", "late", "deaf"), [(True, False, 0), (True, False, 1), (False, True, 0)])
async def test_a_start_whose_confirmation_was_lost_was_none(bench: Bench, stored: bool, late: bool, deaf: int) -> None:
    """It was written, maybe late, and not sent: the job is queued again, and does not count as interrupted."""
    bench.store = Cut(state=JobState.RUNNING, stored=stored, late=late, deaf=deaf)
    await bench.put()
    assert await bench.run() == 201.0
    assert ((await bench.now()).state, (await bench.now()).attempts) == (JobState.QUEUED, 0)
    bench.wall = 201.0
    assert await bench.run() is None
    after = await bench.now()
    assert (after.state, after.attempts) == (JobState.SUCCEEDED, 1)
    assert len(bench.calls.sent) == 1


async def test_a_start_that_was_never_written_never_will_be(bench: Bench) -> None:
    """Its write was given up, and would meet another revision now."""
    bench.store = Cut(state=JobState.RUNNING)
    stored = await bench.put()
    assert await bench.run() == 201.0
    assert [one.state for one in bench.store.writes] == [JobState.QUEUED, JobState.QUEUED]
    begun = jobs.started(stored, ME, "call_late", 1, 200.0)
    assert begun is not None
    with pytest.raises(WrongRevision):
        await bench.store.update(begun, 1)


@dataclass(kw_only=True)
class Slow(MemoryJobs):
    """Starts, or ends, take as long to be written as a test wants."""

    state: JobState = JobState.RUNNING
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def update(self, job: JobRecord, revision: int) -> int:
        if job.state is self.state:
            self.begun.set()
            await self.go_on.wait()
        return await super().update(job, revision)


async def test_a_start_that_is_written_when_its_runner_has_gone_is_taken_back(bench: Bench) -> None:
    """The shard went elsewhere meanwhile: the next home would wait for somebody who lives, and runs nothing."""
    bench.store = slow = Slow()
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await slow.begun.wait()
    run.cancel()
    await asyncio.wait([run])  # it has waited for as long as its last word may take
    slow.go_on.set()
    await until(lambda: len(slow.writes) >= 3)
    after = await bench.now()
    assert (after.state, after.attempts, after.runner) == (JobState.QUEUED, 0, None)
    assert not bench.calls.sent


@dataclass(kw_only=True)
class Failing(Calls):
    """Calls that fail while their start hook is still busy."""

    failed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, call: PreparedCall) -> CallResult:
        assert call.start_hook is not None
        call.start_hook(builders.run(call.call_id, 1, gateway="one-a", home="one-a"), lambda *, allowed: False)
        self.failed.set()
        raise ContainerDied("its node is gone")


async def test_a_start_is_taken_back_that_is_written_when_its_call_has_failed_and_its_runner_has_gone(
    bench: Bench,
) -> None:
    """As above: the runner waits for the write when the shard goes elsewhere."""
    bench.store, bench.calls = slow, failing = Slow(), Failing()
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await failing.failed.wait()
    await slow.begun.wait()
    run.cancel()
    slow.go_on.set()
    await asyncio.wait([run])

    assert run.cancelled()
    await until(lambda: len(slow.writes) == 3)
    after = await bench.now()
    assert (after.state, after.attempts, after.runner) == (JobState.QUEUED, 0, None)


async def test_a_start_that_was_written_after_its_call_had_failed_is_none(bench: Bench) -> None:
    """Whatever the call failed with: the job is queued again, and does not count as interrupted."""
    bench.store, bench.calls = slow, failing = Slow(), Failing()
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await failing.failed.wait()
    slow.go_on.set()

    assert await run == 201.0
    after = await bench.now()
    assert (after.state, after.attempts, after.runner) == (JobState.QUEUED, 0, None)


@dataclass(kw_only=True)
class Blind(Cut):
    """A start is stored and not confirmed, and then nothing can be read until a test wants."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    sees: bool = False

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        if self._lost is not None and not self.sees:
            self.asked.set()
            raise BusTimeout("no answer")
        return await super().read(tenant, job)


async def test_a_start_is_taken_back_once_it_is_seen_though_its_runner_has_gone(bench: Bench) -> None:
    """The bus was away when the shard went elsewhere, and for longer than a runner may go on."""
    bench.store = blind = Blind(state=JobState.RUNNING, stored=True)
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await blind.asked.wait()
    run.cancel()
    await asyncio.wait([run])
    blind.sees = True

    await until(lambda: len(blind.writes) == 3)
    after = await bench.now()
    assert (after.state, after.attempts, after.runner) == (JobState.QUEUED, 0, None)


@dataclass(kw_only=True)
class Usurped(MemoryJobs):
    """Another gateway starts the job when this one wants to, and says so late."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def update(self, job: JobRecord, revision: int) -> int:
        if job.runner == ME and job.state is JobState.RUNNING:
            theirs = msgspec.structs.replace(job, runner=OTHER, run="call_theirs")
            await super().update(theirs, revision)
            self.begun.set()
            await self.go_on.wait()
        return await super().update(job, revision)


async def test_who_leaves_a_job_that_another_gateway_has_started_leaves_its_record_alone(bench: Bench) -> None:
    """Queued again, it would be started a second time."""
    bench.store = store = Usurped()
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await store.begun.wait()
    run.cancel()
    store.go_on.set()
    await asyncio.wait([run])

    assert run.cancelled()
    after = await bench.now()
    assert (after.state, after.runner, after.run) == (JobState.RUNNING, OTHER, "call_theirs")


async def test_a_result_that_is_being_written_when_its_gateway_ends_is_kept(bench: Bench) -> None:
    """It has arrived, and would be lost as an interruption."""
    bench.store = slow = Slow(state=JobState.SUCCEEDED)
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await slow.begun.wait()
    run.cancel()
    await asyncio.sleep(0)
    slow.go_on.set()
    await asyncio.wait([run])
    assert run.cancelled()
    assert (await bench.now()).state is JobState.SUCCEEDED
