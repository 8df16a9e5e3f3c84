"""One job from the work queue to its end: the home of its function is the origin of the call that it becomes.

    read -> decide -> (put off | write an end | call)
    call -> granted -> `JobStart` writes the start -> sent -> result, error or no start in time -> write the end

A job is queued, granted, sent and answered as every call. Its start is written into its record before it is sent, and
its end on that start, both by compare-and-set. So a runner that has lost the job sends and writes nothing, and a job
has one result. Every step returns the unix second at which to look at the job again, or None.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.host.blobs import BlobMissing, BlobsDown
from pilotlight_core.model.errors import BadInput, NotFound, PilotlightError, Unavailable
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import FailurePoint, JobRecord, JobState, RunnerIdentity
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.jobs import job_payloads
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_permit import JobPermit, JobPermits
from pilotlight_gateway.jobs.job_port import JobStore
from pilotlight_gateway.jobs.job_record_writer import LAST_WRITE_S, JobRecordWriter
from pilotlight_gateway.jobs.job_results import JobResults
from pilotlight_gateway.jobs.job_start import JobStart, UnsentStart
from pilotlight_gateway.jobs.job_versions import bound_to, point_beside
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.schedules.tick_jobs import bound_at_tick, deployed_version, owner_of
from pilotlight_gateway.splits.split_calls import STALE
from pilotlight_gateway.splits.splits import Chosen
from pilotlight_gateway.tenancy.timeout_limit import check_job_time

log = structlog.get_logger(__name__)
LOOK_AGAIN_S = 1.0
"""Between two looks at a job that another gateway runs."""
PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""Between two tries of a job that does not start."""
BUSY_S = 30.0
"""Between two looks at a job of a disabled tenant."""
NO_START = jobs.JobError(code="deadline_exceeded", detail="It did not start in time.")


@dataclass(frozen=True, kw_only=True)
class JobDependencies:
    """What the runners of a gateway share."""

    store: JobStore
    calls: JobCalls
    permits: JobPermits
    results: JobResults
    me: RunnerIdentity
    wall: Callable[[], float]
    """Unix seconds."""


class JobRunner:
    """Runs one job. `started` is called when a run is first sent."""

    def __init__(self, ground: JobDependencies, tenant: str, job: str, started: Callable[[], None]) -> None:
        self._ground = ground
        self._record = JobRecordWriter(ground.store, tenant, job)
        self._started = started
        self._start: JobStart | None = None
        self._held_s = 0.0
        self.lacks_money = False
        """It is held since no budget has the money of its run: no container is to start for it."""
        self._tries = 0

    @property
    def sent(self) -> bool:
        """Whether a run was sent."""
        return self._start is not None and self._start.progress.sent

    @property
    def held(self) -> float:
        """Seconds for which the tenant's limits or storage quota hold the job back."""
        return self._held_s if self._start is None else self._start.progress.held_s

    async def run(self, tries: int) -> float | None:
        """Run the job, which was put off `tries` times without a start. None: nothing is left to do."""
        self._tries = tries
        try:
            if not await self._record.read() or self._record.ended:
                return None
            return await self._decide()
        except BusError:
            return self._ground.wall() + LOOK_AGAIN_S

    # -- before it runs ------------------------------------------------------------------------------------------

    async def _decide(self) -> float | None:
        ground, job = self._ground, self._record.job
        at = ground.wall()
        if job.state is JobState.RUNNING:
            assert job.runner is not None  # noqa: S101 - what runs has one
            if job.runner != ground.me and await ground.store.is_alive(job.runner):
                return at + LOOK_AGAIN_S
            log.info("a job's gateway is gone", job=job.id, gateway=job.runner.name)
            return await self._write(jobs.interrupted(job, at, "its gateway is gone"))
        if at >= job.expires_at:
            return await self._write(jobs.expired(job, at))
        if at < job.run_at:
            return job.run_at
        if job.tick and not job.attempts and (bound := await self._bound_at_tick()) != job:
            return await self._write(bound)
        owner = ground.calls.registry.tenant_nowait(job.tenant)
        if owner is not None and owner.disabled:
            return at + BUSY_S
        return await self._admit()

    async def _admit(self) -> float | None:
        """Choose the version of its next start, and run it if its tenant may."""
        ground, job = self._ground, self._record.job
        registry, at = ground.calls.registry, ground.wall()
        try:
            chosen = await ground.calls.versions.choose(job)
            check_job_time(registry, job.tenant, chosen.version)
        except NotFound as gone:
            return await self._write(jobs.undeliverable(job, at, gone.detail))
        except BadInput as refused:  # the limit was lowered since
            return await self._write(jobs.undeliverable(job, at, refused.detail, refused.wire_code))
        except BlobsDown:
            return self._pause()
        self._held_s = await ground.results.quota.pause(job.tenant)
        if not self._held_s:
            self._held_s = await ground.permits.of(job, chosen.version).lack_s()
            self.lacks_money = self._held_s > 0.0
        if self._held_s:
            return at + self._held_s
        if chosen.version.id != job.version and not await self._record.write(bound_to(job, chosen.version)):
            return self._next_look(written=False)
        return await self._with_input(chosen)

    async def _bound_at_tick(self) -> JobRecord:
        """The job of a tick as what was deployed at that instant makes it, from the bus: the mirror may be behind."""
        registry, job, at = self._ground.calls.registry, self._record.job, self._ground.wall()
        version_id = deployed_version(job, await registry.app(*owner_of(job)), at)
        version = None if version_id is None else await registry.fetch_version(version_id)
        return bound_at_tick(job, version, at)

    async def _with_input(self, chosen: Chosen) -> float | None:
        ground, job = self._ground, self._record.job
        try:
            with ground.calls.budget.holding(job.input_size, job.tenant):
                data = job.input
                if job.input_blob is not None:
                    data = await job_payloads.fetch_payload(ground.results.blobs, job.tenant, job.input_blob)
                return await self._call(chosen, data)
        except BlobMissing:
            gone = jobs.undeliverable(job, ground.wall(), "Its input is not in the blob store any more.")
            return await self._write(gone)
        except (BlobsDown, Unavailable):
            return self._pause()

    # -- while it runs -------------------------------------------------------------------------------------------

    async def _call(self, chosen: Chosen, data: bytes) -> float | None:
        ground, job, usage = self._ground, self._record.job, CallUsage()
        left = job.expires_at - ground.wall()
        permit = ground.permits.of(job, chosen.version)
        start = self._start = self._make_start(permit)
        try:
            call = await ground.calls.prepare(job, chosen, data, left, usage, start.open_gate)
            try:
                permit.read(call)
            except BadInput as refused:
                return await self._write(jobs.undeliverable(job, ground.wall(), refused.detail, refused.wire_code))
            match await self._outcome(call, start, left):
                case CallResult() as result:
                    return await self._succeeded(result)
                case PilotlightError() if start.progress.held_s:
                    return ground.wall() + start.progress.held_s
                case PilotlightError() as error:
                    return await self._failed(jobs.job_error(redact_for_caller(error, call)), call, start)
                case None:
                    return await self._failed(NO_START, call, start)
        finally:
            permit.settle(usage)

    def _make_start(self, permit: JobPermit) -> JobStart:
        ground = self._ground
        return JobStart(
            self._record,
            permit,
            ground.results.quota,
            me=ground.me,
            wall=ground.wall,
            on_first_sent=self._started,
        )

    async def _outcome(self, call: PreparedCall, start: JobStart, left: float) -> CallResult | PilotlightError | None:
        """What became of the call, once no start is being written; None: it did not start within `left` seconds."""
        outcome: PilotlightError | None = None
        async with self._interruptible(call, start):
            try:
                async with asyncio.timeout(left) as start.time_limit:
                    return await self._ground.calls.run(call)
            except TimeoutError:
                pass
            except PilotlightError as error:
                outcome = error
            await start.settled()
        return outcome

    @asynccontextmanager
    async def _interruptible(self, call: PreparedCall, start: JobStart) -> AsyncIterator[None]:
        """Write the interruption if the block is cancelled."""
        try:
            yield
        except asyncio.CancelledError:
            await self._write_interruption(call, start)
            raise

    async def _write_interruption(self, call: PreparedCall, start: JobStart) -> None:
        """This gateway ends or is not the job's home any more: spare the next one from finding out."""
        start.abandon()
        with contextlib.suppress(TimeoutError, BusError):
            async with asyncio.timeout(LAST_WRITE_S):
                await start.settled()
                job = self._record.job
                if (job.state, job.runner, job.run) == (JobState.RUNNING, self._ground.me, call.call_id):
                    point = FailurePoint.NOT_STARTED if start.progress.unsent else FailurePoint.INTERRUPTED
                    error = jobs.JobError(code="container_died", detail="its gateway was shut down")
                    await self._record.write(jobs.failed(job, point, error, self._ground.wall(), is_untold=True))

    # -- how it ends ---------------------------------------------------------------------------------------------

    async def _succeeded(self, result: CallResult) -> float | None:
        ground, run = self._ground, self._record.job.run
        stored = await ground.results.store(self._record.job, result.output)
        spent, stages, cold_start = result.spent, result.stages, result.cold_start

        def done(record: JobRecord) -> JobRecord:
            return jobs.succeeded(
                record,
                ground.wall(),
                output=stored.output,
                blob=stored.blob,
                spent=spent,
                spent_before=result.spent_before,
                stages=stages,
                cold_start=cold_start,
                units=result.units,
                sold=result.sold,
            )

        written = await self._record.write_end(done)
        # It may be our own write, whose confirmation was lost.
        if not written and (self._record.job.state, self._record.job.run) != (JobState.SUCCEEDED, run):
            await ground.results.drop(self._record.job, stored)
        return self._next_look(written=written)

    async def _failed(self, failure: jobs.JobError, call: PreparedCall, start: JobStart) -> float | None:
        ground, usage = self._ground, call.usage
        assert usage is not None  # noqa: S101 - jobs have one
        # A run that used nothing was never begun, whatever was written before: an agent had turned it away.
        began = usage.is_begun and failure is not NO_START and not start.progress.unsent
        if not began and (failure.code == "cancelled" or start.progress.unsent):
            async with self._interruptible(call, start):
                unsent = await start.find_unsent()
            if unsent is UnsentStart.NEVER:
                return ground.wall() + LOOK_AGAIN_S
            if unsent is UnsentStart.LOST:
                return self._next_look(written=False)
        job, side = self._record.job, call.side
        point = point_beside(jobs.failure_point_of(failure.code, began=began), failure.code, job, side)
        # What the new version of a rollout has failed, the old one runs next.
        stays = side is not None and side.arm is Arm.CANARY and failure.code != STALE
        if point is FailurePoint.NOT_STARTED:
            return await self._not_started(failure, stays=stays)
        error = await ground.results.fit_error(job, failure)
        return await self._write_failure(point, error, is_untold=bool(usage.lost), stays=stays)

    async def _not_started(self, failure: jobs.JobError, *, stays: bool) -> float | None:
        at, job = self._ground.wall(), self._record.job
        if job.state is JobState.RUNNING or (stays and not job.stays and at < job.expires_at):
            return await self._write_failure(FailurePoint.NOT_STARTED, failure, stays=stays)
        if at >= job.expires_at:
            return await self._write(jobs.expired(msgspec.structs.replace(job, error=failure), at))
        return self._pause()

    async def _write_failure(
        self, point: FailurePoint, failure: jobs.JobError, *, is_untold: bool = False, stays: bool = False
    ) -> float | None:
        def after(record: JobRecord) -> JobRecord:
            failed = jobs.failed(record, point, failure, self._ground.wall(), is_untold=is_untold)
            return msgspec.structs.replace(failed, stays=record.stays or stays)

        return self._next_look(written=await self._record.write_end(after))

    async def _write(self, job: JobRecord) -> float | None:
        """Raises BusError: it may be written or not."""
        return self._next_look(written=await self._record.write(job))

    def _next_look(self, *, written: bool) -> float | None:
        """When to look again after our write, or another's that was first."""
        if self._record.ended:
            return None
        return self._record.job.run_at if written else self._ground.wall() + LOOK_AGAIN_S

    def _pause(self) -> float:
        return self._ground.wall() + min(PAUSE_S * 2.0 ** min(self._tries, 10), LONGEST_PAUSE_S)
