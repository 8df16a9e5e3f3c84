"""One job from the work queue to its end: the home of its function is the origin of the call that it becomes.

It takes the way of every call: queued at the home by class, granted, sent, answered. Two things are its own. Before it
is sent its start is written into its record, by compare-and-set: who loses that sends nothing. And its end is written
there, by compare-and-set on the very start: who was taken for dead meanwhile has lost that too. So a job has one
result, whoever runs what.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import structlog

from pilotlight_core.bus import BusError, WrongRevision
from pilotlight_core.host.blobs import BlobMissing, BlobsDown, BlobStore
from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_core.model.messages.agent_messages import Run
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import FailurePoint, JobRecord, JobState, RunnerIdentity
from pilotlight_core.model.spec import Mode, VersionRecord
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort, CallResult, Go, PreparedCall
from pilotlight_gateway.calls.call_responses import checked_value, is_value
from pilotlight_gateway.calls.collected_chunks import collect_chunks
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.jobs import job_payloads
from pilotlight_gateway.jobs.job_permit import JobPermit
from pilotlight_gateway.jobs.job_port import JobStore, StoredJob
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota, StorageCharge
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.scheduling_class import scheduling_class_of

LOOK_AGAIN_S = 1.0
"""How often a job that another gateway runs is looked at."""
WRITE_AGAIN_S = 0.25
LAST_WORD_S = 2.0
"""For writing how a job stands when its gateway ends."""
PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""Between two tries of a job that does not get to start."""
BUSY_S = 30.0
"""Before a job of a tenant that is disabled is looked at again."""
log = structlog.get_logger(__name__)


@dataclass(kw_only=True)
class JobDependencies:
    """What runners stand on."""

    store: JobStore
    calls: CallPort
    registry: RegistryPort
    blobs: BlobStore
    budget: ByteBudget
    validators: Validators
    limits: Limiter
    costs: Estimates
    me: RunnerIdentity
    clock: Callable[[], float]
    """Monotonic seconds."""
    wall: Callable[[], float]
    """Unix seconds."""
    room: JobStorageQuota
    ended: Callable[[JobRecord], None] = lambda _: None
    """Told of every job that this gateway has seen to its end."""


class RunnerStopped(Exception):
    """The job is not this runner's any more."""


class JobRunner:
    """Looks after one job: `run` says until when it is to be put off, or None when nothing is left to do."""

    def __init__(self, ground: JobDependencies, tenant: str, job: str, started: Callable[[], None]) -> None:
        self._ground = ground
        self._tenant = tenant
        self._job = job
        self._started = started
        self.sent = False
        """Whether it was sent, or is about to be."""
        self.held = 0.0
        """Seconds for which its tenant's limits, or its room, hold it back; it was not sent."""
        self._found: StoredJob | None = None
        self._wait: asyncio.Timeout | None = None
        self._opening: asyncio.Task[None] | None = None
        self._tab = CallUsage()
        self._permit: JobPermit | None = None
        self._unsent = ""
        """The run whose start was, or may have been, written, and that was not sent."""
        self._left = False
        """Whether its gateway ends, or is not its home any more."""
        self._tries = 0

    async def run(self, tries: int) -> float | None:
        """See the job through; `tries` is how often it was put off without a start. Unix seconds, or None."""
        self._tries = tries
        try:
            found = await self._ground.store.read(self._tenant, self._job)
            if found is None or found.job.state.terminal:
                return None
            self._found = found
            return await self._look()
        except RunnerStopped:
            return None if self._over() else self._ground.wall() + LOOK_AGAIN_S
        except BusError:
            return self._ground.wall() + LOOK_AGAIN_S

    # -- before it runs ------------------------------------------------------------------------------------------

    async def _look(self) -> float | None:
        ground, job = self._ground, self._now
        at = ground.wall()
        if job.state is JobState.RUNNING:
            assert job.runner is not None  # noqa: S101 - what runs has one
            if job.runner != ground.me and await ground.store.is_alive(job.runner):
                return at + LOOK_AGAIN_S
            return await self._write(jobs.interrupted(job, at, f"gateway {job.runner.name} is gone"))
        if at >= job.expires_at:
            return await self._write(jobs.expired(job, at))
        if at < job.run_at:
            return job.run_at
        owner = ground.registry.tenant_nowait(job.tenant)
        if owner is not None and owner.disabled:
            return at + BUSY_S
        version = ground.registry.version(job.version) or await ground.registry.fetch_version(job.version)
        if version is None:
            return await self._write(jobs.undeliverable(job, at, f"There is no version {job.version} any more."))
        self.held = await ground.room.pause(job.tenant)
        if self.held:
            return at + self.held
        return await self._with_input(version)

    async def _with_input(self, version: VersionRecord) -> float | None:
        ground, job = self._ground, self._now
        try:
            with ground.budget.holding(job.input_size, job.tenant):
                data = job.input
                if job.input_blob is not None:
                    data = await job_payloads.fetch_payload(ground.blobs, job.tenant, job.input_blob)
                return await self._call(self._prepared(version, data))
        except BlobMissing:
            gone = jobs.undeliverable(job, ground.wall(), "Its input is not in the blob store any more.")
            return await self._write(gone)
        except (BlobsDown, Unavailable):
            return self._pause()

    def _prepared(self, version: VersionRecord, data: bytes) -> PreparedCall:
        ground, job = self._ground, self._now
        spec = version.spec
        standing = scheduling_class_of(ground.registry, job.tenant, job.function)
        method, at = spec.method(job.method), ground.clock()
        return PreparedCall(
            # A fresh id for each run: whatever is still said of an earlier one concerns nobody.
            id=ground.calls.new_id(),
            client_id=None,
            tenant=job.tenant,
            # What a failure leads to is decided by the record, which outlives this process.
            version=msgspec.structs.replace(version, spec=msgspec.structs.replace(spec, retries=0, idempotent=False)),
            method=method,
            input=data,
            priority=standing.lowered(job.priority),
            # A job may wait for as long as it has time, however long the queue is.
            standing=msgspec.structs.replace(standing, queue_calls=0, queue_ms=0.0),
            deadline=at + (job.expires_at - ground.wall()) + spec.timeout,
            arrived=at,
            stream=method.mode is not Mode.UNARY,
            tab=self._tab,
            gate=self._gate,
        )

    # -- while it runs -------------------------------------------------------------------------------------------

    async def _call(self, call: PreparedCall) -> float | None:
        ground, job = self._ground, self._now
        permit = self._permit = JobPermit(
            ground.limits, ground.costs, tenant=job.tenant, function=job.function, version=job.version
        )
        try:
            return await self._run(call)
        finally:
            permit.settle(self._tab)

    async def _run(self, call: PreparedCall) -> float | None:
        ground = self._ground
        left = self._now.expires_at - ground.wall()
        try:
            async with asyncio.timeout(left) as self._wait:
                result = await (
                    ground.calls.run(call) if is_value(call)
                    else collect_chunks(ground.calls, call, ground.validators, ground.budget)
                )  # fmt: skip
                if is_value(call):
                    checked_value(ground.validators, call, result.output, look=False)
        except TimeoutError:
            await self._opened()
            return await self._not_started(jobs.JobError(code="deadline_exceeded", detail="It did not start in time."))
        except PilotlightError as error:
            await self._opened()
            if self.held:
                return ground.wall() + self.held
            return await self._failed(redact_for_caller(error, call))
        except asyncio.CancelledError:
            await self._broken_off()
            raise
        return await self._succeeded(result)

    def _gate(self, run: Run, go: Go) -> None:
        """See `Gate`: the start is written before the run is sent."""
        self._opening = asyncio.get_running_loop().create_task(self._open(run, go))
        self._opening.add_done_callback(self._tell_crash)

    async def _open(self, run: Run, go: Go) -> None:
        """Write the start, then send the run. Whatever goes wrong before it is sent, its home gets the grant back."""
        try:
            if not await self._write_start(run):
                go(allowed=False)
                return
            sent = go(allowed=True)
        except Exception as error:
            # It may be written or not. If it is, nobody else will start it, and we know that it was not sent.
            bug = None if isinstance(error, BusError) else error
            log.warning("a job's start is not confirmed", job=self._job, error=str(error), exc_info=bug)
            self._unsent = run.call
            go(allowed=False)
            await self._taken_back()
            return
        if not sent:
            self._unsent = run.call
            await self._taken_back()
            return
        self._unsent = ""
        if not self.sent:
            self.sent = True
            self._started()

    async def _write_start(self, run: Run) -> bool:
        """Whether the start is written, by us; if not, it is not to be sent. Raises as the store and the limits do."""
        ground = self._ground
        assert self._permit is not None  # noqa: S101 - it was made before the call
        self.held = await ground.room.pause(self._tenant) or await self._permit.take()
        if self.held:
            return False
        begun = jobs.started(self._now, ground.me, run.call, run.grant, ground.wall())
        if begun is None:
            return False
        try:
            self._found = StoredJob(begun, await ground.store.update(begun, self._revision))
        except WrongRevision:
            return False
        if self._wait is not None:
            with contextlib.suppress(RuntimeError):  # nobody waits for it any more
                self._wait.reschedule(None)
        return True

    def _tell_crash(self, opening: asyncio.Task[None]) -> None:
        if not opening.cancelled() and (error := opening.exception()) is not None:
            log.error("a job's start is not seen through", job=self._job, exc_info=error)

    async def _taken_back(self) -> None:
        """If nobody waits for it any more, the start that was not sent is none: the next home makes another."""
        if self._left:
            told = jobs.JobError(code="container_died", detail="its gateway was not its home any more")
            with contextlib.suppress(RunnerStopped):
                if await self._has_start():
                    await self._insist(
                        lambda record: jobs.failed(record, FailurePoint.NOT_STARTED, told, self._ground.wall())
                    )

    async def _opened(self) -> None:
        """Once what was being written about a start is written, or is known to have failed."""
        if self._opening is not None:
            await asyncio.wait([self._opening])

    async def _broken_off(self) -> None:
        """This gateway ends, or is not its home any more."""
        self._left = True
        with contextlib.suppress(TimeoutError, BusError, RunnerStopped):
            async with asyncio.timeout(LAST_WORD_S):
                await self._opened()
                if self._now.state is JobState.RUNNING:
                    reason = "its gateway was shut down"
                    point = FailurePoint.NOT_STARTED if self._unsent else FailurePoint.INTERRUPTED
                    told = jobs.JobError(code="container_died", detail=reason)
                    await self._write(jobs.failed(self._now, point, told, self._ground.wall()))

    # -- how it ends ---------------------------------------------------------------------------------------------

    async def _succeeded(self, result: CallResult) -> float | None:
        ground, run = self._ground, self._now.run
        counted, fits = await self._fit(len(result.output), job_payloads.OUTPUT_INLINE)
        output, blob = result.output, None
        if not fits:
            counted = await ground.room.count(self._tenant, len(output), self._kept_until)
            blob = await self._kept(output)
            output = b""
        stages, spent, cold = result.stages, result.spent, result.cold_start

        def done(record: JobRecord) -> JobRecord:
            return jobs.succeeded(
                record, ground.wall(), output=output, blob=blob, spent=spent, stages=stages, cold_start=cold
            )

        try:
            return await self._insist(done)
        except RunnerStopped:
            # Unless it is our own write, whose confirmation was lost.
            if (self._now.state, self._now.run) != (JobState.SUCCEEDED, run):
                await self._dropped(counted, blob)
            raise

    async def _fit(self, size: int, most: int) -> tuple[StorageCharge | None, bool]:
        """What was counted of `size` bytes for the record, if anything, and whether they may stand in it.

        Others' ends have to be written into the same bucket.
        """
        if size <= job_payloads.COUNTED or size > most:
            return None, size <= job_payloads.COUNTED
        counted = await self._ground.room.fit(self._tenant, size, self._kept_until)
        return counted, counted is not None

    async def _dropped(self, counted: StorageCharge | None, blob: jobs.BlobRef | None) -> None:
        """The result is nobody's: the job was taken from us."""
        if counted is not None:
            self._ground.room.give_back(counted)
        if blob is not None:
            with contextlib.suppress(BlobsDown):
                await self._ground.blobs.delete(self._tenant, blob.sha256)

    @property
    def _kept_until(self) -> float:
        return self._ground.wall() + self._now.keep_s

    async def _kept(self, output: bytes) -> jobs.BlobRef:
        while True:
            try:
                return await job_payloads.store_payload(
                    self._ground.blobs, self._tenant, self._job, self._now.run, output
                )
            except BlobsDown as error:
                log.warning("a job's result waits for the blob store", job=self._job, error=str(error))
                await asyncio.sleep(PAUSE_S)

    async def _failed(self, error: PilotlightError) -> float | None:
        told = jobs.job_error(error)
        # What no tab knows of was never begun, whatever was noted before: an agent had turned it away.
        began = not self._unsent and bool(self._tab.known or self._tab.lost or self._tab.is_open)
        if not began and told.code == "cancelled" and not await self._has_start():
            return self._ground.wall() + LOOK_AGAIN_S
        point = jobs.failure_point_of(told.code, began=began)
        if point is FailurePoint.NOT_STARTED:
            return await self._not_started(told)
        size = len(told.detail) + len(told.traceback)
        if not (await self._fit(size, size))[1]:
            told = msgspec.structs.replace(told, detail=told.detail[: job_payloads.COUNTED], traceback="")
        return await self._insist(lambda record: jobs.failed(record, point, told, self._ground.wall()))

    async def _has_start(self) -> bool:
        """Whether the start that was not sent is written; if not, it cannot be any more.

        Raises:
            Stopped: it was lost to somebody else, or to a cancellation.
        """
        while True:
            await self._refresh()
            if (self._now.runner, self._now.run) == (self._ground.me, self._unsent):
                return True
            if self._now.state is not JobState.QUEUED:
                raise RunnerStopped
            with contextlib.suppress(RunnerStopped):
                # A write that was given up may still be on its way: it must not meet the revision that it expects.
                await self._write(self._now)
                return False

    async def _not_started(self, told: jobs.JobError) -> float | None:
        ground = self._ground
        at = ground.wall()
        if self._now.state is JobState.RUNNING:
            return await self._insist(lambda record: jobs.failed(record, FailurePoint.NOT_STARTED, told, ground.wall()))
        if at >= self._now.expires_at:
            return await self._write(jobs.expired(msgspec.structs.replace(self._now, error=told), at))
        return self._pause()

    async def _insist(self, change: Callable[[JobRecord], JobRecord]) -> float | None:
        """Write the end of what we run; if this gateway ends meanwhile, it is still tried for a moment."""
        writing = asyncio.get_running_loop().create_task(self._end(change))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing], timeout=LAST_WORD_S)
            if writing.done() and not writing.cancelled():
                writing.exception()  # whose it is now hears nothing from us
            raise
        finally:
            writing.cancel()

    async def _end(self, change: Callable[[JobRecord], JobRecord]) -> float | None:
        """Write an end, however long the bus is away, unless the job was taken from us."""
        ours = (self._now.runner, self._now.run, self._now.state)
        while True:
            try:
                return await self._write(change(self._now))
            except RunnerStopped:
                pass
            except BusError as error:
                log.warning("a job's end waits for the bus", job=self._job, error=str(error))
                await asyncio.sleep(WRITE_AGAIN_S)
                await self._refresh()
            # Written by ourselves without our knowing, or by whoever took us for dead: either way it is not ours now.
            if (self._now.runner, self._now.run, self._now.state) != ours:
                raise RunnerStopped

    async def _write(self, job: JobRecord) -> float | None:
        """Write a change: when to look again, or None if it has ended.

        Raises:
            Stopped: somebody else has changed it; what stands there now is known.
            BusError: it may be written or not.
        """
        try:
            self._found = StoredJob(job, await self._ground.store.update(job, self._revision))
        except WrongRevision:
            await self._refresh()
            raise RunnerStopped from None
        if job.state.terminal:
            self._ground.ended(job)
            return None
        return job.run_at

    async def _refresh(self) -> None:
        """Learn what stands there, however long the bus is away."""
        while True:
            try:
                found = await self._ground.store.read(self._tenant, self._job)
            except BusError as error:
                log.debug("a job's record is not seen", job=self._job, error=str(error))
                await asyncio.sleep(WRITE_AGAIN_S)
                continue
            if found is None:
                raise RunnerStopped
            self._found = found
            return

    def _over(self) -> bool:
        return self._found is None or self._found.job.state.terminal

    def _pause(self) -> float:
        return self._ground.wall() + min(PAUSE_S * 2.0 ** min(self._tries, 10), LONGEST_PAUSE_S)

    @property
    def _now(self) -> JobRecord:
        assert self._found is not None  # noqa: S101 - it was read first
        return self._found.job

    @property
    def _revision(self) -> int:
        assert self._found is not None  # noqa: S101 - as above
        return self._found.revision
