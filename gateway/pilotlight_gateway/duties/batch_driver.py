"""Runs one batch: submits its items as jobs, counts their ends, and stores the progress.

A job's id follows from the batch and the item's index, so a later driver can submit unsettled items again without
running them twice. The stream of the tenant's jobs is read from before the first submission, so no end is missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import structlog
from msgspec import structs

from pilotlight_core.bus import Bus, WrongRevision, retry_conflicts
from pilotlight_core.bus.reader import StreamCursor
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.job_messages import JobNote
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.batches import (
    BatchChunk,
    BatchItem,
    BatchRecord,
    BatchState,
    broken,
    finished,
    job_of,
)
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_gateway.batches.batch_manifest import read_chunks, read_items
from pilotlight_gateway.batches.batch_port import BatchStore
from pilotlight_gateway.duties.batch_progress import BatchProgress
from pilotlight_gateway.jobs import job_payloads
from pilotlight_gateway.jobs.job_port import JobStore, PublishJob, StoredJob

AT_A_TIME = 16
"""Concurrent submissions of one batch; single jobs run in between."""
KEEP_EVERY = 1.0
"""Seconds between writes of the progress."""
POLL = 5.0
LOOK_EVERY = 10.0
"""Seconds between checks of a cancelled batch's waiting jobs."""
UNREADABLE = "its inputs cannot be read"

T = TypeVar("T")
log = structlog.get_logger(__name__)


class _End(msgspec.Struct, frozen=True):
    """The fields of a job's record that the driver needs."""

    id: str
    state: JobState = JobState.QUEUED


_end = msgspec.msgpack.Decoder(_End)


@dataclass(frozen=True, kw_only=True)
class BatchDependencies:
    """What every `BatchDriver` uses."""

    bus: Bus
    batches: BatchStore
    jobs: JobStore
    blobs: BlobStore
    publish: PublishJob
    region: str
    wall: Callable[[], float] = time.time


class BatchDriver:
    """Runs a batch until it is over, its turn ends, or its record changes other than by a cancellation."""

    def __init__(self, ground: BatchDependencies, record: BatchRecord, revision: int) -> None:
        self._ground = ground
        self._record = record
        self._revision = revision
        self._progress = BatchProgress((), 0, record.settled)
        self._changed = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._left = False
        """Whether the batch's turn has ended."""
        self._wrote = float("-inf")
        if record.state is BatchState.CANCELLING:
            self._cancelled.set()

    def note(self, record: BatchRecord) -> None:
        """Another process wrote the record, perhaps to cancel the batch."""
        if record.state is BatchState.CANCELLING and record.resumes == self._record.resumes:
            self._cancelled.set()
            self._changed.set()

    def leave(self) -> None:
        """End the batch's turn: submit no more, and store the progress."""
        self._left = True
        self._changed.set()

    async def run(self) -> None:
        """Run the batch to its end, or until `leave`.

        Raises:
            BusError, WrongRevision: the batch needs a new driver.
        """
        stream, subject = bucket_stream(JOB_BUCKET), key_subject(JOB_BUCKET, f"{self._record.tenant}.*")
        start = await self._ground.bus.jetstream.last_sequence(stream) + 1
        position = StreamCursor(self._ground.bus, stream, subject, start)
        listening = self._ground.bus.listening(bells={subject: position.ring})
        async with listening, asyncio.TaskGroup() as group:
            following = group.create_task(self._follow(position))
            try:
                await self._drive()
            except (BlobMissing, msgspec.DecodeError) as error:
                why = f"an input is gone: {error.detail}" if isinstance(error, BlobMissing) else UNREADABLE
                await self._write(broken(await self._present(), self._ground.wall(), why))
            following.cancel()

    async def _drive(self) -> None:
        record = self._record
        chunks = await read_chunks(self._ground.blobs, record.tenant, record.chunks)
        self._progress = BatchProgress(chunks, record.settled_chunks, record.settled)
        while not self._stops and not self._progress.all_begun:
            if self._progress.may_begin:
                number = self._progress.begin()
                await self._submit_all(number, await read_items(self._ground.blobs, record.tenant, chunks[number]))
                await self._keep()
            else:
                await self._wait()
        while self._progress.out and not self._stops:
            await self._wait()
        if self._cancelled.is_set() and not self._left:
            await self._cancel(chunks)
        if self._left and self._progress.settled_chunks < len(chunks):
            await self._write(await self._present())
            return
        await self._write(finished(await self._present(), self._ground.wall()))
        log.info("batch is over", tenant=record.tenant, batch=record.id, state=str(self._record.state))

    @property
    def _stops(self) -> bool:
        return self._left or self._cancelled.is_set()

    # -- submitting ----------------------------------------------------------------------------------------------

    async def _submit_all(self, chunk: int, items: tuple[BatchItem, ...]) -> None:
        room = asyncio.Semaphore(AT_A_TIME)

        async def submit(item: BatchItem) -> None:
            try:
                await self._submit(item)
            finally:
                room.release()

        async with asyncio.TaskGroup() as group:
            for item in items:
                await room.acquire()
                while not self._progress.has_room and not self._stops:
                    await self._wait()
                if self._stops:
                    return
                self._progress.submit(self._job_id(item.index), chunk)
                group.create_task(submit(item))

    async def _submit(self, item: BatchItem) -> None:
        job = self._job(item)
        if self._may_be_forgotten and await self._ground.jobs.read(job.tenant, job.id) is None:
            self._ended(job.id, JobState.EXPIRED)
            return
        if len(item.input) > job_payloads.INPUT_INLINE:
            blob = await job_payloads.store_payload(self._ground.blobs, job.tenant, job.id, "input", item.input)
            job = structs.replace(job, input=b"", input_blob=blob)
        found = await self._revived(await self._ground.jobs.create(job))
        if found.state.terminal:
            self._ended(found.id, found.state)
        elif found.state is JobState.QUEUED:
            self._ground.publish(self._flow, JobNote(found.id))

    @property
    def _may_be_forgotten(self) -> bool:
        """Whether the job of an ended item may have expired, as if it had never run."""
        return self._ground.wall() >= self._record.created_at + self._record.keep_s

    async def _revived(self, found: StoredJob) -> JobRecord:
        """The job; queued again if it was cancelled before the batch was resumed."""

        async def attempt() -> JobRecord:
            nonlocal found
            job = found.job
            if job.state is not JobState.CANCELLED or job.redrives >= self._record.resumes:
                return job
            again = jobs.redriven(job, self._ground.wall())
            assert again is not None  # noqa: S101 - a cancelled one is driven again
            again = structs.replace(again, redrives=self._record.resumes, expires_at=self._record.expires_at)
            try:
                await self._ground.jobs.update(again, found.revision)
            except WrongRevision:
                found = await self._ground.jobs.read(job.tenant, job.id) or found
                raise
            return again

        try:
            return await retry_conflicts(attempt)
        except WrongRevision:
            return found.job

    def _job(self, item: BatchItem) -> JobRecord:
        record, at = self._record, self._ground.wall()
        return JobRecord(
            id=self._job_id(item.index),
            tenant=record.tenant,
            function=record.function,
            version=record.version,
            ref=record.ref,
            method=record.method,
            priority=Priority.BATCH,
            input=item.input,
            created_at=at,
            run_at=at,
            expires_at=max(record.expires_at, at + 1.0),
            keep_s=record.keep_s,
            retries=record.retries,
            idempotent=record.idempotent,
            timeout=record.timeout,
            traceparent=record.traceparent,
        )

    def _job_id(self, index: int) -> str:
        return job_of(self._ground.region, self._record.tenant, self._record.id, index)

    @property
    def _flow(self) -> str:
        record = self._record
        return subjects.job_flow(self._ground.region, record.function, record.tenant, Priority.BATCH)

    # -- cancelling ----------------------------------------------------------------------------------------------

    async def _cancel(self, chunks: tuple[BatchChunk, ...]) -> None:
        """Cancel queued jobs. Running ones end by themselves, and are not retried."""
        await self._recover(chunks)
        looked = float("-inf")
        while self._progress.out and not self._left:
            if time.monotonic() - looked > LOOK_EVERY:
                looked = time.monotonic()
                await _each(self._progress.jobs(), self._cancel_waiting)
            else:
                await self._wait()

    async def _recover(self, chunks: tuple[BatchChunk, ...]) -> None:
        """Find jobs that an earlier driver submitted."""
        while not self._progress.all_begun and self._progress.may_begin:
            self._progress.begin()
        begun = range(self._progress.settled_chunks, self._progress.next_chunk)
        await _each([(number, index) for number in begun for index in _indices(chunks[number])], self._recover_item)

    async def _recover_item(self, place: tuple[int, int]) -> None:
        chunk, index = place
        job = self._job_id(index)
        if chunk < self._progress.settled_chunks or self._progress.knows(job, chunk):
            return
        if (found := await self._ground.jobs.read(self._record.tenant, job)) is not None:
            self._progress.submit(job, chunk)
            if found.job.state.terminal:
                self._ended(job, found.job.state)

    async def _cancel_waiting(self, job: str) -> None:
        found = await self._ground.jobs.read(self._record.tenant, job)
        if found is not None and found.job.state is JobState.QUEUED:
            with contextlib.suppress(WrongRevision):  # it has just started or ended
                await self._ground.jobs.update(jobs.cancelled(found.job, self._ground.wall()), found.revision)
        elif found is not None and found.job.state.terminal:
            self._ended(job, found.job.state)

    # -- following -----------------------------------------------------------------------------------------------

    async def _follow(self, position: StreamCursor) -> None:
        while True:
            page = await position.read()
            for stored in page.records:
                if not stored.gone:
                    self._on_record(stored.data)
            if not page.records:
                await position.wait_bell(POLL)

    def _on_record(self, data: bytes) -> None:
        try:
            job = _end.decode(data)
        except msgspec.DecodeError as error:
            log.error("a job's record cannot be read", error=str(error))
            return
        if job.state.terminal:
            self._ended(job.id, job.state)

    def _ended(self, job: str, state: JobState) -> None:
        if self._progress.end(job, str(state)):
            self._changed.set()

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KEEP_EVERY):
                await self._changed.wait()
        self._changed.clear()
        await self._keep()

    # -- the record ----------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        if time.monotonic() - self._wrote >= KEEP_EVERY:
            present = await self._present()
            if present != self._record:
                await self._write(present)

    async def _present(self) -> BatchRecord:
        """The stored record with the present progress."""
        record = self._record
        found = await self._ground.batches.read(record.tenant, record.id)
        if found is None or found[0].resumes != record.resumes or found[0].state.over:
            raise WrongRevision(f"The batch {record.id} is not what it was.")
        self._record, self._revision = found
        self.note(self._record)
        progress = self._progress
        return structs.replace(
            self._record,
            settled_chunks=progress.settled_chunks,
            settled=progress.settled,
            counts=progress.counts,
            submitted=progress.submitted,
        )

    async def _write(self, record: BatchRecord) -> None:
        self._revision = await self._ground.batches.update(record, self._revision)
        self._record, self._wrote = record, time.monotonic()


def _indices(chunk: BatchChunk) -> range:
    return range(chunk.first, chunk.first + chunk.count)


async def _each(things: list[T], work: Callable[[T], Coroutine[Any, Any, None]]) -> None:
    """Run `work` on everything, `AT_A_TIME` at once."""
    for start in range(0, len(things), AT_A_TIME):
        async with asyncio.TaskGroup() as group:
            for thing in things[start : start + AT_A_TIME]:
                group.create_task(work(thing))
