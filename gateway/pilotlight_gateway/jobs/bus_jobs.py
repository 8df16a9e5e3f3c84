"""Jobs in a bucket of the bus. A write is confirmed once it is synced to disk, in a cluster by a majority."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import msgspec
import structlog

from pilotlight_core.bus import Bus, StoreRefused, WrongRevision, read_holder
from pilotlight_core.bus.jetstream import READ_TIMEOUT, StreamMessage, StreamPage
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.records.jobs import JobRecord, RunnerIdentity, job_key
from pilotlight_core.model.subjects import JOB_BUCKET, LEASE_BUCKET
from pilotlight_gateway.idempotency.bus_key_records import BusDoorbell
from pilotlight_gateway.jobs.bucket_headroom import Headroom
from pilotlight_gateway.jobs.job_port import SCAN_AT_MOST, JobPage, StoredJob
from pilotlight_gateway.jobs.sealed_cursors import SECRET_BYTES

WINDOW = 256
"""Sequences in a listing's first window; windows double where a tenant has few jobs."""
WINDOW_RECORDS = 1_024
THIN = 64
SECRET_PLACE = "secret"  # noqa: S105 - where it is, not what
"""Beside the jobs, whose keys have two parts."""

log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(JobRecord)


class BusJobs:
    """The real `JobStore`."""

    def __init__(self, bus: Bus, *, headroom: Headroom | None = None) -> None:
        self._bus = bus
        self._kv = bus.kv(JOB_BUCKET)
        self._group_commit = bus.group_commit(JOB_BUCKET)
        self._leases = bus.kv(LEASE_BUCKET)
        self._stream = bucket_stream(JOB_BUCKET)
        self._headroom = headroom or Headroom(partial(bus.jetstream.filled, self._stream))

    async def create(self, job: JobRecord) -> StoredJob:
        if self._headroom.full:
            raise _no_room("what is left of the bucket is for the jobs that are in it")
        # A key of the client's own may be there already: that one would hold up those it goes with.
        write = self._group_commit.update if job.id == job.submission else self._kv.update
        try:
            return StoredJob(job, await write(job.key, _encoder.encode(job), 0))
        except WrongRevision:
            # Another submission under the same key, or this one by a write whose confirmation was lost.
            found = await self.read(job.tenant, job.id)
            return found or await self.create(job)  # None: it was forgotten just now
        except StoreRefused as error:
            raise _no_room(str(error)) from None

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        entry = await self._kv.get(job_key(tenant, job))
        return StoredJob(_decoder.decode(entry.value), entry.revision) if entry is not None else None

    async def update(self, job: JobRecord, revision: int) -> int:
        # The server counts lifetimes from a second on.
        ttl = max(1.0, job.keep_s) if job.state.terminal else None
        try:
            return await self._group_commit.update(job.key, _encoder.encode(job), revision, ttl=ttl)
        except WrongRevision:
            found = await self.read(job.tenant, job.id)
            if found is not None and found.job == job:  # our own write, whose confirmation was lost
                return found.revision
            raise

    async def page(
        self, tenant: str, *, limit: int, before: int = 0, wanted: Callable[[JobRecord], bool] = lambda _: True
    ) -> JobPage:
        """Read the stream backwards, in windows of sequences."""
        end = before or await self._bus.jetstream.last_sequence(self._stream) + 1
        found: list[JobRecord] = []
        width, scanned = WINDOW, 0
        while end > 1 and scanned < SCAN_AT_MOST:
            start = max(1, end - width)
            records = await self._between(tenant, start, end)
            if records is None:
                width = max(WINDOW, width // 8)
                continue
            scanned += len(records)
            for record in reversed(records):
                job = _readable(record)
                if job is not None and wanted(job):
                    found.append(msgspec.structs.replace(job, input=b"", output=b""))
                    if len(found) == limit:
                        return JobPage(jobs=tuple(found), before=record.seq)
            end = start
            if len(records) < THIN:
                width *= 2
        return JobPage(jobs=tuple(found), before=end if end > 1 else 0)

    async def secret(self) -> bytes:
        while True:
            if (entry := await self._kv.get(SECRET_PLACE)) is not None:
                return entry.value
            with contextlib.suppress(WrongRevision):
                await self._kv.update(SECRET_PLACE, os.urandom(SECRET_BYTES), 0)

    async def is_alive(self, runner: RunnerIdentity) -> bool:
        entry = await self._leases.get(f"gateway.{runner.name}")
        return entry is not None and read_holder(*entry).data.decode(errors="replace") == runner.instance

    @asynccontextmanager
    async def watch(self, tenant: str, job: str) -> AsyncIterator[BusDoorbell]:
        bell = BusDoorbell()
        bells = {key_subject(JOB_BUCKET, job_key(tenant, job)): bell.ring}
        async with self._bus.listening(bells=bells, reconnected=bell.reconnected):
            yield bell

    async def _between(self, tenant: str, start: int, end: int) -> list[StreamMessage] | None:
        """The tenant's records from sequence `start` to before `end`; None: too many at once."""
        subject = key_subject(JOB_BUCKET, f"{tenant}.*")
        found: list[StreamMessage] = []
        while start < end:
            page = await self._bus.jetstream.persist(partial(self._read_page, subject, start), READ_TIMEOUT)
            inside = [record for record in page.records if record.seq < end]
            found += [record for record in inside if not record.gone]
            if len(inside) < len(page.records) or not page.pending:
                break
            if len(found) > WINDOW_RECORDS:
                return None
            start = page.records[-1].seq + 1
        return found

    async def _read_page(self, subject: str, seq: int, timeout_s: float) -> StreamPage:
        return await self._bus.jetstream.page(self._stream, subject, seq, timeout=timeout_s)


def _readable(record: StreamMessage) -> JobRecord | None:
    try:
        return _decoder.decode(record.data)
    except msgspec.DecodeError as error:
        log.error("a job's record cannot be read", key=record.subject, error=str(error))
        return None


def _no_room(why: str) -> Unavailable:
    log.error("a job cannot be stored", why=why)
    return Unavailable("The platform's room for jobs is used up.", code="overloaded", retry_after=60.0)
