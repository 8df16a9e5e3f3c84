"""Whatever goes wrong while a job's start is written, its run is given up and the job is tried again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_gateway.jobs.job_port import StoredJob
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.limits_port import FREE
from tests.gateway.jobs.test_job_runner import Bench
from tests.gateway.jobs.test_runner_writes import Slow
from tests.gateway.world import World
from tests.waiting import until


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world=world)


@dataclass(kw_only=True)
class Broken(MemoryJobs):
    """Raises what nobody foresaw, once, when a start is written."""

    stored: bool = False
    """Whether it is written all the same."""

    async def update(self, job: JobRecord, revision: int) -> int:
        broken = job.state is JobState.RUNNING and not any(one.state is JobState.RUNNING for one in self.writes)
        if not broken or self.stored:
            await super().update(job, revision)
        if broken:
            if not self.stored:
                self.writes.append(job)
            raise ZeroDivisionError("a bug")
        return self._revision


@pytest.mark.parametrize("stored", [False, True])
async def test_a_start_that_fails_in_an_unforeseen_way_gives_the_run_up(bench: Bench, stored: bool) -> None:
    """At once, not when the job expires: nothing was sent, nothing counts as interrupted, and the next try runs."""
    bench.store = Broken(stored=stored)
    await bench.put()
    with capture_logs() as lines:
        async with asyncio.timeout(30):
            until = await bench.run()

    assert until == 201.0
    assert not bench.calls.sent
    assert [type(line["exc_info"]) for line in lines] == [ZeroDivisionError]
    assert ((await bench.now()).state, (await bench.now()).attempts) == (JobState.QUEUED, 0)
    bench.wall = 201.0
    assert await bench.run() is None
    assert (await bench.now()).state is JobState.SUCCEEDED


async def test_a_job_whose_limits_cannot_be_asked_gives_its_run_up(bench: Bench) -> None:
    """Nothing is written yet; before it was queued they could be asked."""
    before = iter([FREE, FREE])  # of its money, and of the tokens that one call may have

    def policy(*_: str) -> LimitPolicy:
        if (found := next(before, None)) is None:
            raise ZeroDivisionError("a bug")
        return found

    await bench.put()
    bench.limits.policy = policy
    with capture_logs() as lines:
        async with asyncio.timeout(30):
            until = await bench.run()

    assert until == 201.0
    assert [type(line["exc_info"]) for line in lines] == [ZeroDivisionError]
    assert (await bench.now()).state is JobState.QUEUED


@dataclass(kw_only=True)
class Deaf(Slow):
    """Slow to write a start, and then to be read no more."""

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        if self.go_on.is_set():
            raise ZeroDivisionError("a bug")
        return await super().read(tenant, job)


async def test_what_goes_wrong_when_a_start_is_taken_back_is_logged(bench: Bench) -> None:
    """Its runner is gone by then: nobody else would read it."""
    bench.store = store = Deaf()
    await bench.put()
    run = asyncio.ensure_future(bench.run())
    await store.begun.wait()
    run.cancel()
    await asyncio.wait([run])
    with capture_logs() as lines:
        store.go_on.set()
        await until(lambda: lines)

    assert [type(line["exc_info"]) for line in lines] == [ZeroDivisionError]
    assert not bench.calls.sent
