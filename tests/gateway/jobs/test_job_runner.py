"""A runner writes a start before it sends, an end that nobody else has written, and what a failure leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest

from pilotlight_core.bus import BusTimeout
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.errors import (
    Cancelled,
    ContainerDied,
    FunctionRaised,
    PilotlightError,
    TooMuch,
    Unavailable,
)
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.call_messages import Run
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobFailureReason, JobRecord, JobState, RunnerIdentity
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.call_fake import SPENT, FakeCalls
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_payloads import store_payload
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_port import StoredJob
from pilotlight_gateway.jobs.job_results import JobResults
from pilotlight_gateway.jobs.job_runner import PAUSE_S, JobDependencies, JobRunner
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.storage_quota.job_quota import ASK_AGAIN_S, JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from tests.builders.jobs import JOB, job
from tests.gateway.body_codecs import small_codec
from tests.gateway.world import World, function

ME, OTHER = RunnerIdentity("one", "one-a"), RunnerIdentity("two", "two-a")
OUTPUT = msgspec.msgpack.encode("done")


@dataclass(kw_only=True)
class Calls(FakeCalls):
    """Calls that pass their start hook, as real ones do, `grants` times."""

    grants: int = 1
    sent: list[Run] = field(default_factory=list)
    then: Callable[[], None] = lambda: None
    """Once it was sent."""

    async def run(self, call: PreparedCall) -> CallResult:
        self.seen.append(call)
        for number in range(1, self.grants + 1):
            opened: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

            def go(*, allowed: bool, opened: asyncio.Future[bool] = opened) -> bool:
                if opened.done():
                    return False
                opened.set_result(allowed)
                return allowed

            run = Run(
                call_id=call.call_id, tenant=call.tenant, version=call.version.id, container="c1", method="", epoch=1,
                grant_number=number, gateway="one-a", home="one-a", start_within_ms=1.0, timeout_ms=1.0,
            )  # fmt: skip
            assert call.start_hook is not None
            call.start_hook(run, go)
            if not await opened:
                raise Cancelled("it was given up")
            self.sent.append(run)
        if self.sent and call.usage is not None:
            call.usage.count(1.0, 1, 0)
        self.then()
        return await self._result(call)


@dataclass(kw_only=True)
class Bench:
    """Everything that a runner stands on, and its clock."""

    world: World
    store: MemoryJobs = field(default_factory=MemoryJobs)
    calls: Calls = field(default_factory=lambda: Calls(output=OUTPUT))
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    limits: MemoryLimiter = field(default_factory=MemoryLimiter)
    costs: Estimates = field(default_factory=Estimates)
    prices: CallPrices | None = None
    held: float = 0.0
    lacks_money: bool = False
    wall: float = 200.0
    share: int = 10**9
    """What the tenant may store."""
    quota: JobStorageQuota = field(init=False)

    def __post_init__(self) -> None:
        self.quota = JobStorageQuota(MemoryQuotaRecords(), limit=self.share, life=1_000.0, wall=lambda: self.wall)

    async def put(self, **more: object) -> JobRecord:
        """A job of a version that is there."""
        (version,) = self.world.deploy(function("hello", timeout=10.0))
        stored = job(**{"version": version.id, **more})
        await self.store.create(stored)
        return stored

    async def run(self, tries: int = 0, job: str = JOB) -> float | None:
        """What becomes of it."""
        ground = JobDependencies(
            store=self.store,
            calls=JobCalls(
                calls=self.calls,
                registry=self.world.registry,
                schemas=VersionSchemas(self.world.blobs),
                codec=small_codec(),
                budget=ByteBudget(limit=10**7),
                clock=lambda: 0.0,
            ),
            permits=JobPermits(limits=self.limits, costs=self.costs, prices=self.prices),
            results=JobResults(blobs=self.blobs, quota=self.quota, wall=lambda: self.wall),
            me=ME,
            wall=lambda: self.wall,
        )
        runner = JobRunner(ground, "acme", job, lambda: None)
        until = await runner.run(tries)
        self.held, self.lacks_money = runner.held, runner.lacks_money
        return until

    async def now(self) -> JobRecord:
        found = await self.store.read("acme", JOB)
        assert found is not None
        return found.job


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world=world)


async def test_a_job_runs_once_and_its_result_is_kept(bench: Bench) -> None:
    """Queued, running under the run that was sent, succeeded: three writes."""
    await bench.put()
    bench.calls.spent_before = (msgspec.structs.replace(SPENT, price="a100"),)
    assert await bench.run() is None

    assert [one.state for one in bench.store.writes] == [JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED]
    done = await bench.now()
    assert (done.output, done.attempts, done.run) == (OUTPUT, 1, bench.calls.sent[0].call_id)
    assert (done.spent, done.spent_before) == (SPENT, bench.calls.spent_before)
    assert await bench.run() is None
    assert len(bench.calls.sent) == 1


async def test_whoever_loses_the_start_sends_nothing(bench: Bench) -> None:
    """Another gateway was first: it is looked at again, in case that one dies."""
    stored = await bench.put()
    begun = jobs.started(stored, OTHER, "call_other", 1, 150.0)
    assert begun is not None
    before = bench.store.read

    async def read(tenant: str, name: str) -> object:
        found = await before(tenant, name)
        if len(bench.store.writes) == 1:
            assert found is not None
            await bench.store.update(begun, found.revision)
        return found

    bench.store.read = read  # type: ignore[method-assign,assignment]
    assert await bench.run() == 201.0
    assert not bench.calls.sent
    assert (await bench.now()).runner == OTHER


async def test_a_run_that_is_turned_away_is_one_attempt(bench: Bench) -> None:
    """Granted three times, sent three times, counted once."""
    await bench.put()
    bench.calls.grants = 3
    assert await bench.run() is None
    assert (await bench.now()).attempts == 1


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (FunctionRaised("ValueError: no"), JobState.FAILED, JobFailureReason.RAISED),
        (ContainerDied("gone"), JobState.FAILED, JobFailureReason.INTERRUPTED),
        (PilotlightError("too long", code="execution_timeout"), JobState.FAILED, JobFailureReason.TIMEOUT),
        (PilotlightError("not so", code="bad_output"), JobState.FAILED, JobFailureReason.BAD_OUTPUT),
    ],
    ids=lambda one: getattr(one, "wire_code", ""),
)
async def test_a_failure_is_final_where_it_may_not_run_again(
    bench: Bench, error: PilotlightError, state: JobState, reason: JobFailureReason
) -> None:
    """With the reason for which it is dead."""
    await bench.put()
    bench.calls.error = error
    assert await bench.run() is None
    dead = await bench.now()
    assert (dead.state, dead.reason, dead.attempts) == (state, reason, 1)


async def test_it_is_tried_again_where_it_may(bench: Bench) -> None:
    """What raised as often as `retries` says, what was lost where that is safe: the runner says when."""
    await bench.put(retries=1, idempotent=True)
    bench.calls.error = FunctionRaised("ValueError: no")
    assert await bench.run() == 201.0
    bench.wall, bench.calls.error = 201.0, ContainerDied("gone")
    assert await bench.run() == 202.0
    bench.wall, bench.calls.error = 202.0, None
    assert await bench.run() is None

    assert (await bench.now()).attempts == 3
    assert len({run.call_id for run in bench.calls.sent}) == 3  # nothing that is said of one is taken for another


async def test_what_does_not_get_to_start_is_put_off_and_writes_nothing(bench: Bench) -> None:
    """Longer each time, up to half a minute."""
    await bench.put()
    bench.calls.grants, bench.calls.error = 0, Unavailable("no room")
    assert [await bench.run(tries) for tries in (0, 1, 9)] == [201.0, 202.0, 230.0]
    assert len(bench.store.writes) == 1


async def test_what_was_noted_and_turned_away_for_good_did_not_start(bench: Bench) -> None:
    """Its start was written, and no agent began it: it is queued again, and it was no attempt."""
    await bench.put()
    bench.calls.error = Unavailable("ten containers in turn could not take it")
    bench.calls.then = lambda: _forget(bench.calls.seen[-1])
    assert await bench.run() == 201.0
    after = await bench.now()
    assert (after.state, after.attempts) == (JobState.QUEUED, 0)


def _forget(call: PreparedCall) -> None:
    assert call.usage is not None
    call.usage.count(0.0, 0, 0)


async def test_what_stays_billed_of_a_lost_run_is_not_billed_again(bench: Bench) -> None:
    """The next call of the job is told for how long the last one ran, if nobody has said what that cost."""
    await bench.put(idempotent=True)

    def silent() -> None:
        bench.wall += 7.0
        (bench.calls.seen[-1].usage or CallUsage()).count(0.0, 0, 1)

    bench.calls.error, bench.calls.then = ContainerDied("its node is silent"), silent
    bench.wall = await bench.run() or 0.0
    bench.calls.error, bench.calls.then = None, lambda: None
    assert await bench.run() is None
    assert [call.lost_ms for call in bench.calls.seen] == [0.0, 7_000.0]


async def test_a_runner_that_is_gone_interrupted_its_job(bench: Bench) -> None:
    """One that lives is left alone; ours without a task is gone too."""
    stored = await bench.put()
    begun = jobs.started(stored, OTHER, "call_other", 1, 150.0)
    assert begun is not None
    await bench.store.update(begun, 1)
    assert await bench.run() == 201.0
    assert (await bench.now()).state is JobState.RUNNING

    bench.store.gone.add(OTHER)
    assert await bench.run() is None
    dead = await bench.now()
    assert (dead.state, dead.reason) == (JobState.FAILED, JobFailureReason.INTERRUPTED)


async def test_who_was_taken_for_dead_loses_the_result(bench: Bench) -> None:
    """It woke up too late: the job has ended otherwise, and stays so."""
    stored = await bench.put()

    def taken_over() -> None:
        found = bench.store._kept[stored.key]
        lost = jobs.interrupted(found.job, 200.0, "taken for dead")
        bench.store._kept[stored.key] = found._replace(job=lost, revision=found.revision + 1)

    bench.calls.then = taken_over
    assert await bench.run() is None
    assert (await bench.now()).reason is JobFailureReason.INTERRUPTED


async def test_a_cancellation_between_start_and_end_wins_over_a_failure(bench: Bench) -> None:
    """And loses against an answer that is there."""
    stored = await bench.put()

    def cancel() -> None:
        found = bench.store._kept[stored.key]
        wanted = jobs.cancel_wanted(found.job, 200.0)
        bench.store._kept[stored.key] = found._replace(job=wanted, revision=found.revision + 1)

    bench.calls.then, bench.calls.error = cancel, Cancelled("stop")
    assert await bench.run() is None
    assert (await bench.now()).state is JobState.CANCELLED


async def test_times(bench: Bench) -> None:
    """Too early it waits, too late it expires; of a disabled tenant nothing starts."""
    await bench.put(run_at=300.0)
    assert await bench.run() == 300.0
    bench.world.registry.tenant_records["acme"] = msgspec.structs.replace(
        bench.world.registry.tenant_records["acme"], disabled=True
    )
    bench.wall = 300.0
    assert await bench.run() == 330.0
    bench.wall = 1_000.0
    assert await bench.run() is None
    assert (await bench.now()).state is JobState.EXPIRED


async def test_what_it_needs_may_be_gone(bench: Bench) -> None:
    """Its version, or the blob of its input: nothing will make it run."""
    await bench.put(version="ver_gone")
    assert await bench.run() is None
    assert (await bench.now()).reason is JobFailureReason.UNDELIVERABLE


async def test_it_waits_while_the_schemas_of_its_version_cannot_be_read(bench: Bench) -> None:
    """They are in the blob store: without them nobody could say whether its answer is what was promised."""
    record = await bench.put()
    versions = bench.world.registry.versions
    versions[record.version] = msgspec.structs.replace(versions[record.version], schemas_apart=True)
    bench.world.blobs.down = True

    assert await bench.run() == bench.wall + PAUSE_S
    assert (await bench.now()).state is record.state


async def test_a_job_that_may_run_no_longer_so_long_is_not_started(bench: Bench) -> None:
    """Its tenant's limit was lowered since: it ends with the limit's name, and may be redriven once it is raised."""
    await bench.put()
    bench.world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(timeout_s=9.0))

    assert await bench.run() is None

    ended = await bench.now()
    assert (ended.reason, ended.error and ended.error.code) == (JobFailureReason.UNDELIVERABLE, "bad_input")
    assert "timeout_s of acme" in str(ended.error)
    assert bench.calls.seen == []


async def test_large_inputs_and_results_are_blobs(bench: Bench) -> None:
    """Each of its own job, though the content may be another's too."""
    big = msgspec.msgpack.encode({"name": "x" * 100_000})
    ref = await store_payload(bench.blobs, "acme", JOB, "input", big)
    await bench.put(input_blob=ref)
    bench.calls.output = big
    assert await bench.run() is None

    done = await bench.now()
    assert bench.calls.seen[0].input == big
    assert done.output == b""
    assert done.output_blob is not None
    assert done.output_blob.sha256 != ref.sha256
    assert len(bench.blobs.kept) == 2


async def test_while_the_bus_is_away_it_is_looked_at_again(bench: Bench) -> None:
    """Nothing is known, so nothing is done."""
    await bench.put()
    bench.store.error = BusTimeout("no answer")
    assert await bench.run() == 201.0


# -- limits ----------------------------------------------------------------------------------------------------------

FUNCTION = "acme:shop.hello"


def limited(bench: Bench, limits: Limits) -> None:
    """Its tenant has limits."""
    policy = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS), FUNCTION)
    bench.limits = MemoryLimiter(lambda *_: policy, lambda: bench.wall)


async def test_a_job_waits_where_a_call_would_be_refused(bench: Bench) -> None:
    """No place is free: nothing is written or sent, and it is told when to come again. Then one is, and it runs."""
    limited(bench, Limits(concurrency=1))
    other = await bench.limits.admit("acme", FUNCTION, bench.limits.policy("acme", FUNCTION), 0.0)
    await bench.put()
    until = await bench.run()
    assert until is not None
    assert bench.held > 0
    assert until == bench.wall + bench.held
    assert (await bench.now()).attempts == 0
    assert not bench.calls.sent

    other.end(0.0)
    assert await bench.run() is None
    assert (await bench.now()).state is JobState.SUCCEEDED
    again = await bench.limits.admit("acme", FUNCTION, bench.limits.policy("acme", FUNCTION), 0.0)
    assert again.error is None  # its place is free again


async def test_cost_is_counted_at_the_start_and_settled_at_the_end(bench: Bench) -> None:
    """An estimate first, then what it took, which the next estimate is learnt from; a submission asks for none."""
    limited(bench, Limits(cost_per_s=10.0, cost_burst=150.0))
    await bench.put()
    assert await bench.run() is None

    policy = bench.limits.policy("acme", FUNCTION)
    assert bench.costs.of((await bench.now()).version, FUNCTION) == 2.0
    spent = await bench.limits.admit("acme", FUNCTION, policy, 148.0, LimitAskKind.START)
    assert spent.error is None  # 150 less the two that it took
    assert (await bench.limits.admit("acme", FUNCTION, policy, 10.0, LimitAskKind.START)).error is not None
    assert (await bench.limits.admit("acme", FUNCTION, policy, 10.0, LimitAskKind.SUBMISSION)).error is None


async def test_what_was_not_started_costs_nothing(bench: Bench) -> None:
    """Its place and its estimate are given back."""
    limited(bench, Limits(concurrency=1, cost_per_s=1.0, cost_burst=100.0))
    await bench.put()
    bench.calls = Calls(error=Unavailable("none", code="no_capacity"), grants=0)
    assert await bench.run() is not None
    bench.calls = Calls(output=OUTPUT)
    assert await bench.run() is None


async def test_what_was_noted_and_never_began_expires(bench: Bench) -> None:
    """It did not fail: nobody ever started it."""
    stored = await bench.put()
    bench.calls.error = Unavailable("ten containers in turn could not take it")

    def too_late() -> None:
        _forget(bench.calls.seen[-1])
        bench.wall = stored.expires_at

    bench.calls.then = too_late
    assert await bench.run() is None
    after = await bench.now()
    assert (after.state, after.reason, after.attempts) == (JobState.EXPIRED, JobFailureReason.EXPIRED, 0)


@pytest.mark.parametrize("room", [True, False])
async def test_where_there_is_no_room_in_the_bucket_a_result_is_a_blob(world: World, room: bool) -> None:
    """Unless it is as small as what a record counts as; and of an error its first words are kept."""
    bench = Bench(world=world, share=10**9 if room else 1_000)
    middling = msgspec.msgpack.encode("x" * 10_000)
    await bench.put(retries=1)
    bench.calls.error = FunctionRaised("y" * 10_000, traceback="z" * 10_000)
    assert await bench.run() == 201.0
    told = (await bench.now()).error
    assert told is not None
    assert (len(told.detail), len(told.traceback)) == ((10_000, 10_000) if room else (256, 0))

    bench.wall, bench.calls.error, bench.calls.output = 201.0, None, middling
    assert await bench.run() is None
    done = await bench.now()
    assert done.output == (middling if room else b"")
    assert len(bench.blobs.kept) == (0 if room else 1)


async def test_a_result_in_a_blob_counts_as_stored_until_it_is_forgotten(world: World) -> None:
    """It keeps new jobs out at once, and nothing is started once there is far too much."""
    bench = Bench(world=world, share=20_000)
    bench.calls.output = msgspec.msgpack.encode("x" * 100_000)
    for number in (5, 6):
        await bench.put(id=f"{JOB[:-1]}{number}")
        assert await bench.run(job=f"{JOB[:-1]}{number}") is None
        with pytest.raises(TooMuch):
            await bench.quota.take("acme", 1, bench.wall + 60.0)
    assert [one.state for one in bench.store.writes].count(JobState.SUCCEEDED) == 2
    assert len(bench.blobs.kept) == 2

    await bench.put()
    before = len(bench.calls.sent)
    assert await bench.run() == 200.0 + ASK_AGAIN_S
    assert (bench.held, len(bench.calls.sent)) == (ASK_AGAIN_S, before)
    bench.wall += 60.0 + 1_000.0 / 24  # a slot after they are forgotten
    assert await bench.run() is None
    assert (await bench.now()).state is JobState.SUCCEEDED


async def test_a_result_that_lost_its_job_takes_no_room(world: World) -> None:
    """Neither a blob nor what it counts is left of it."""
    bench = Bench(world=world, share=150_000)
    bench.calls.output = msgspec.msgpack.encode("x" * 100_000)
    stored = await bench.put()

    def taken() -> None:
        found = bench.store._kept[stored.key]
        bench.store._kept[stored.key] = StoredJob(jobs.interrupted(found.job, 200.0, "gone"), found.revision + 100)

    bench.calls.then = taken
    await bench.run()
    assert (await bench.now()).reason is JobFailureReason.INTERRUPTED
    assert not bench.blobs.kept
    assert await bench.quota.fit("acme", 140_000, bench.wall + 60.0)
