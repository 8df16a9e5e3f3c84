"""Jobs as HTTP uses them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight_core.bus import BusError, retry_conflicts
from pilotlight_core.host.blobs import BlobsDown, BlobStore, MemoryBlobs
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput, Conflict, TooMuch, UnknownCall
from pilotlight_core.model.ids import CLIENT_CALL_ID
from pilotlight_core.model.messages.job_messages import JobNote, JobPlace, note_of
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, JobState, keyed_job_id
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.jobs import job_payloads
from pilotlight_gateway.jobs.job_port import PAGE_AT_MOST, JobPage, JobQueue, JobStore
from pilotlight_gateway.jobs.memory_jobs import MemoryJobQueue, MemoryJobs
from pilotlight_gateway.jobs.sealed_cursors import CursorSealer
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords

DAY_S = 86_400.0
KEPT_S = 7 * DAY_S
JOB_BYTES = 2 * 2**30
"""What one tenant may store, over all gateways."""
RECORD_BYTES = 1_000
"""What a record without input and result takes on the server."""
POLL_S = 5.0
"""Between two reads of a waiting request without a doorbell."""
WAITERS_PER_TENANT = 1_000
"""Requests that wait for jobs at a time: each listens on the bus."""
CROWDED_S = 1.0
"""How long further requests wait, so that clients that repeat them are slowed down."""


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission says beyond the call. Instants are unix seconds."""

    run_at: float | None = None
    expires_in_s: float | None = None
    keep_s: float | None = None
    key: str = ""
    """Its Idempotency-Key, if any."""
    fingerprint: bytes = b""


class SubmittedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A stored job; `replayed`: it was stored before."""

    job: JobRecord
    replayed: bool


class JobService:
    """Submits, finds, cancels and redrives jobs. A tenant finds only its own."""

    def __init__(
        self,
        store: JobStore | None = None,
        *,
        queue: JobQueue | None = None,
        quota: JobStorageQuota | None = None,
        blobs: BlobStore | None = None,
        region: str = "local",
        keep_s: float = KEPT_S,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store: JobStore = MemoryJobs() if store is None else store
        self._queue: JobQueue = MemoryJobQueue() if queue is None else queue
        self.quota = quota or JobStorageQuota(MemoryQuotaRecords(), limit=JOB_BYTES, life=keep_s, wall=wall)
        self._blobs: BlobStore = MemoryBlobs() if blobs is None else blobs
        self.cursors = CursorSealer(self.store)
        self._region = region
        self._keep_s = keep_s
        self.wall = wall
        self._clock = clock
        self._waiters: Counter[str] = Counter()
        """Waiting requests by tenant."""
        self._ends_waits = asyncio.Event()

    # -- submitting ----------------------------------------------------------------------------------------------

    async def submit(self, call: PreparedCall, options: JobOptions) -> SubmittedJob:
        """Store a job. It runs then, whatever becomes of this process.

        Raises:
            BadInput: naming the field; `idempotency_key_reused`.
            TooMuch: the tenant has stored too much.
            Unavailable: there is no room. BusError: it may be stored or not.
        """
        job = self._record(call, options)
        size = RECORD_BYTES + len(call.input)
        try:
            found = await self._stored(job, size, call.input)
        except TooMuch:
            # What stands under a key of its client's already takes no room a second time.
            before = await self.store.read(job.tenant, job.id) if job.id != job.submission else None
            if before is None:
                raise
            found = before.job
        replayed = found.submission != job.submission
        if replayed and found.fingerprint != job.fingerprint:
            raise _reused(options)
        if found.state is JobState.QUEUED:
            self._publish(found)
        return SubmittedJob(job=found, replayed=replayed)

    async def _stored(self, job: JobRecord, size: int, data: bytes) -> JobRecord:
        place = job.tenant, size, job.kept_until
        counted = self.quota.spend(*place) or await self.quota.take(*place)
        try:
            if len(data) > job_payloads.INPUT_INLINE:
                # Of this submission alone, so that it can go if another one was first.
                blob = await job_payloads.store_payload(
                    self._blobs, job.tenant, job.id, f"input {job.submission}", data
                )
                job = msgspec.structs.replace(job, input=b"", input_blob=blob)
            stored = (await self.store.create(job)).job
        except BaseException as error:
            self.quota.give_back(counted)  # if it is stored all the same, its share is a little larger
            if not isinstance(error, BusError | asyncio.CancelledError):
                await self._drop_input(job)
            raise
        if stored.submission != job.submission:
            self.quota.give_back(counted)
            await self._drop_input(job)
        return stored

    async def _drop_input(self, job: JobRecord) -> None:
        if job.input_blob is not None:
            with contextlib.suppress(BlobsDown):
                await self._blobs.delete(job.tenant, job.input_blob.sha256)

    def _record(self, call: PreparedCall, options: JobOptions) -> JobRecord:
        at, spec, version = self.wall(), call.version.spec, call.version
        run_at = at if options.run_at is None else options.run_at
        expires_at = max(run_at, at) + (DAY_S if options.expires_in_s is None else options.expires_in_s)
        jobs.check_times(run_at, expires_at, at)
        keep_s = self._keep_s if options.keep_s is None else options.keep_s
        if not 0 < keep_s <= self._keep_s:
            raise BadInput(f"keep_s: more than 0 and at most {self._keep_s:g} seconds.", field="keep_s")
        if options.key and call.client_id is not None:
            raise BadInput("id: a job with an Idempotency-Key has no id of its own.", field="id")
        return JobRecord(
            id=self._id(call, options),
            tenant=call.tenant,
            function=f"{version.tenant}:{version.app}.{version.function}",
            version=version.id,
            ref=version.ref,
            method=call.method.name,
            priority=call.priority,
            input=call.input,
            fingerprint=options.fingerprint,
            client_id=call.client_id,
            submission=call.call_id,
            created_at=at,
            run_at=run_at,
            expires_at=expires_at,
            keep_s=keep_s,
            retries=spec.retries,
            idempotent=spec.idempotent,
            timeout=spec.timeout,
            key_id=call.key,
            traceparent=call.traceparent,
            floats=call.split >= 0,
            sticky=(call.head.sticky or call.head.user) if call.head is not None else "",
        )

    def _id(self, call: PreparedCall, options: JobOptions) -> str:
        if options.key:
            return keyed_job_id(self._region, call.tenant, "key", options.key)
        if call.client_id is not None:
            return keyed_job_id(self._region, call.tenant, "id", call.client_id)
        return call.call_id

    def _publish(self, job: JobRecord) -> None:
        self._queue.publish(self.flow_of(job), note_of(job, self.wall()))

    def flow_of(self, job: JobRecord) -> str:
        """The subject of its work queue."""
        return subjects.job_flow(self._region, job.function, job.tenant, job.priority)

    # -- looking -------------------------------------------------------------------------------------------------

    async def find(self, tenant: str, name: str) -> JobRecord | None:
        """The tenant's job with this id or client's id."""
        found = await self.store.read(tenant, self._name(tenant, name))
        return found.job if found is not None else None

    async def wait(self, job: JobRecord, seconds: float) -> JobRecord:
        """The job once it has ended, or after `seconds`, or sooner: too many requests wait, or none may any more."""
        end = self._clock() + seconds
        if job.state.terminal or seconds <= 0:
            return job
        if self._waiters[job.tenant] >= WAITERS_PER_TENANT:
            await asyncio.sleep(min(seconds, CROWDED_S))
            found = await self.store.read(job.tenant, job.id)
            return found.job if found is not None else job
        self._waiters[job.tenant] += 1
        try:
            return await self._watched(job, end)
        finally:
            self._waiters -= Counter({job.tenant: 1})

    async def _watched(self, job: JobRecord, end: float) -> JobRecord:
        async with self.store.watch(job.tenant, job.id) as bell:
            while True:
                found = await self.store.read(job.tenant, job.id)
                left = 0.0 if self._ends_waits.is_set() else end - self._clock()
                if found is None or found.job.state.terminal or left <= 0:
                    return found.job if found is not None else job
                ring = asyncio.ensure_future(bell.wait(min(left, POLL_S)))
                ends = asyncio.ensure_future(self._ends_waits.wait())
                try:
                    await asyncio.wait((ring, ends), return_when=asyncio.FIRST_COMPLETED)
                    if ring.done():
                        ring.result()  # or what it raised
                finally:
                    ring.cancel()
                    ends.cancel()

    def end_waits(self) -> None:
        """Answer who waits with the job as it is, now and from now on: the process will end."""
        self._ends_waits.set()

    async def locate(self, job: JobRecord) -> JobPlace:
        """See `JobQueue`."""
        return await self._queue.locate(job, self.flow_of(job)) if job.state is JobState.QUEUED else JobPlace()

    async def page(
        self, tenant: str, *, limit: int, before: int = 0, wanted: Callable[[JobRecord], bool] = lambda _: True
    ) -> JobPage:
        return await self.store.page(tenant, limit=min(limit, PAGE_AT_MOST), before=before, wanted=wanted)

    async def output(self, job: JobRecord) -> bytes:
        """The result of a job (msgpack); raises as the blob store does."""
        if job.output_blob is None:
            return job.output
        return await job_payloads.fetch_payload(self._blobs, job.tenant, job.output_blob)

    # -- changing ------------------------------------------------------------------------------------------------

    async def cancel(self, tenant: str, name: str) -> tuple[JobRecord, bool] | None:
        """End a job. Returns its record and whether it had not ended; None: there is no such job."""
        before, job = await self._change(tenant, name, lambda job: jobs.cancel_wanted(job, self.wall()))
        if before is None or job is None:
            return None
        if job.state is JobState.RUNNING:
            await self._queue.stop(job)
        elif before.state is JobState.QUEUED and before.run_at > self.wall():
            self._queue.publish(self.flow_of(job), JobNote(job.id))  # its home expects it no more
        return job, not before.state.terminal

    async def redrive(self, tenant: str, name: str) -> JobRecord:
        """Queue a dead or cancelled job anew.

        Raises:
            UnknownCall: there is no such job. Conflict: it is not dead.
            TooMuch: the tenant has stored too much.
        """
        found = await self.find(tenant, name)
        if found is None:
            raise UnknownCall(f"There is no job {name}.")
        again = jobs.redriven(found, self.wall())
        if again is None:
            raise _not_dead(found)
        counted = await self.quota.take(tenant, RECORD_BYTES + again.input_size, again.kept_until)
        try:
            before, job = await self._change(tenant, name, lambda job: jobs.redriven(job, self.wall()) or job)
            if before is None or job is None:
                raise UnknownCall(f"There is no job {name}.")
            if job is before:
                raise _not_dead(job)
        except BaseException:
            self.quota.give_back(counted)
            raise
        self._publish(job)
        return job

    async def _change(
        self, tenant: str, name: str, change: Callable[[JobRecord], JobRecord]
    ) -> tuple[JobRecord | None, JobRecord | None]:
        async def attempt() -> tuple[JobRecord | None, JobRecord | None]:
            found = await self.store.read(tenant, self._name(tenant, name))
            if found is None:
                return None, None
            changed = change(found.job)
            if changed is not found.job:
                await self.store.update(changed, found.revision)
            return found.job, changed

        return await retry_conflicts(attempt, failed=Conflict("The job changes too fast.", retry_after=1.0))

    def _name(self, tenant: str, name: str) -> str:
        return keyed_job_id(self._region, tenant, "id", name) if CLIENT_CALL_ID.fullmatch(name) else name


def _not_dead(job: JobRecord) -> Conflict:
    return Conflict(f"The job is {job.state}: only what failed, expired or was cancelled is driven again.")


def _reused(options: JobOptions) -> Any:
    if options.key:
        return BadInput(
            "Idempotency-Key: it stands for another job.", code="idempotency_key_reused", field="Idempotency-Key"
        )
    return Conflict("The id stands for another job.", field="id")
