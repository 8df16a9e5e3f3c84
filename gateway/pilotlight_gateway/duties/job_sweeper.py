"""The duty that repairs the work queue from the jobs' records, and deletes the blobs of expired jobs.

A job is accepted when its record is stored, and published shortly after. `JobSweeper` publishes jobs whose publication
was lost: unfinished ones that no message in the work queue names. It follows the records by sequence, and reads the
whole queue at each sweep, whose messages name hundreds of jobs each.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, Lease
from pilotlight_core.bus.jetstream import StreamMessage
from pilotlight_core.bus.reader import StreamCursor
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.host.blobs import BlobsDown, BlobStore
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobNote, JobsStored, note_of
from pilotlight_core.model.records.jobs import BlobRef, JobState
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.subjects import JOB_BUCKET, JOB_STREAM
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.batches.bus_batches import BusBatches
from pilotlight_gateway.duties.bundle_files import BundleFiles
from pilotlight_gateway.duties.orphan_blobs import Orphans
from pilotlight_gateway.duties.version_collector import VersionCollector
from pilotlight_gateway.jobs.job_publisher import NOTES_AT_ONCE
from pilotlight_gateway.leased import while_leased

SWEEP_EVERY_S = 2.0
SWEEP_SHARE = 0.1
"""The largest share of time that sweeps take."""
PUBLISHED_WITHIN_S = 3.0
"""The age of a record from which its job must be in the queue."""
FORGET_AFTER_S = 60.0
"""From the expiry of a record to the deletion of its blobs."""
COLLECT_EVERY_S = 1_800.0
"""Seconds between looks for versions that are not kept any more."""
ORPHANS_EVERY_S = 86_400.0
SEARCH_AGAIN_S = 60.0
"""Seconds until another search, when the store could not be reached."""
PAUSE = 1.0
DEAD_AT_MOST = 100_000
"""Upper bound of the counted jobs."""

log = structlog.get_logger(__name__)


class WatchedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a `JobRecord` that the sweeper needs."""

    id: str
    tenant: str
    function: str
    version: str = ""
    priority: Priority = Priority.STANDARD
    state: JobState = JobState.QUEUED
    run_at: float = 0.0
    tick: int = 0
    ended_at: float = 0.0
    keep_s: float = 0.0
    input_blob: BlobRef | None = None
    output_blob: BlobRef | None = None

    @property
    def blobs(self) -> tuple[str, ...]:
        return tuple(ref.sha256 for ref in (self.input_blob, self.output_blob) if ref is not None)


class OpenJob(msgspec.Struct, frozen=True):
    """An unfinished job, and the unix second of its record's last change."""

    flow: str
    note: JobNote
    since: float
    version: str
    running: bool = False


@dataclass(frozen=True, kw_only=True)
class SweepStatistics:
    """Counts of all jobs."""

    queued: int
    running: int
    dead: int
    """Failed or expired jobs with a record."""
    oldest: float
    """Seconds since the longest waiting job could have started."""
    told_again: int
    """Jobs published again by this process."""


class JobWatchlist:
    """Unfinished jobs, and ended jobs that have blobs. Pure; instants are unix seconds."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._open: dict[str, OpenJob] = {}
        self._blobs: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By key: tenant and digests."""
        self._due = Timers[str]()
        """Instants at which blobs may be deleted."""
        self._dead: dict[str, tuple[float, str]] = {}
        """By key, the expiry of the record and its version, which it may run again."""

    def __len__(self) -> int:
        """The number of unfinished jobs."""
        return len(self._open)

    def see(self, key: str, job: WatchedJob, at: float) -> None:
        """A record was written at `at`."""
        self._blobs.pop(key, None)
        self._due.clear(key)
        self._dead.pop(key, None)
        if not job.state.terminal:
            flow = subjects.job_flow(self._region, job.function, job.tenant, job.priority)
            note = note_of(job, at)
            self._open[key] = OpenJob(flow, note, at, intern(job.version), job.state is JobState.RUNNING)
            return
        self._open.pop(key, None)
        if job.state in (JobState.FAILED, JobState.EXPIRED) and len(self._dead) < DEAD_AT_MOST:
            self._dead[key] = (job.ended_at + job.keep_s, intern(job.version))
        if job.blobs:
            self.postpone(key, job.tenant, job.blobs, job.ended_at + job.keep_s + FORGET_AFTER_S)

    def statistics(self, at: float, told_again: int = 0) -> SweepStatistics:
        """The counts at `at`."""
        self._dead = {key: dead for key, dead in self._dead.items() if dead[0] > at}
        waiting = [max(one.since, one.note.run_at) for one in self._open.values() if not one.running]
        return SweepStatistics(
            queued=len(waiting),
            running=len(self._open) - len(waiting),
            dead=len(self._dead),
            oldest=max(0.0, at - min(waiting, default=at)),
            told_again=told_again,
        )

    def versions(self) -> set[str]:
        """The versions that jobs may run."""
        return {one.version for one in self._open.values()} | {version for _, version in self._dead.values()}

    def gone(self, key: str) -> None:
        """A record was removed."""
        self._dead.pop(key, None)
        self._open.pop(key, None)

    def missing(self, published: set[str], at: float) -> dict[str, list[tuple[str, JobNote]]]:
        """By flow, keys and notes of the jobs that are not in `published`, the ids in the work queue."""
        found: dict[str, list[tuple[str, JobNote]]] = {}
        for key, one in self._open.items():
            if one.note.id not in published and at - one.since >= PUBLISHED_WITHIN_S:
                found.setdefault(one.flow, []).append((key, one.note))
        return found

    def old(self, at: float) -> bool:
        """Whether any job must be in the queue by now."""
        return any(at - one.since >= PUBLISHED_WITHIN_S for one in self._open.values())

    def forgettable(self, at: float) -> list[tuple[str, str, tuple[str, ...]]]:
        """(key, tenant, digests) of blobs to delete if their record is gone; returned once."""
        return [(key, *self._blobs.pop(key)) for key in self._due.due(at)]

    def postpone(self, key: str, tenant: str, digests: tuple[str, ...], due_at: float) -> None:
        """Return blobs whose deletion failed; they are due at `due_at`."""
        self._blobs[key] = (tenant, digests)
        self._due.set(key, due_at)


class JobSweeper:
    """Repairs the queue and deletes blobs while it holds the lease."""

    def __init__(
        self, bus: Bus, blobs: BlobStore, *, region: str, holder: str, search_again_s: float = SEARCH_AGAIN_S
    ) -> None:
        self._bus = bus
        self._blobs = blobs
        self._region = region
        self._holder = holder
        self._kv = bus.kv(JOB_BUCKET)
        self._watchlist: JobWatchlist | None = None
        self._told_again = 0
        self._search_again_s = search_again_s
        self._search_at = time.monotonic()
        self._orphans = Orphans(blobs, self._record, BusBatches(bus).read)
        self._versions = VersionCollector(bus)
        self._collect_at = time.monotonic()

    def statistics(self) -> SweepStatistics | None:
        """None while another process has the duty."""
        return self._watchlist.statistics(time.time(), self._told_again) if self._watchlist is not None else None

    async def run(self) -> None:
        """Run until cancelled."""
        await while_leased(self._bus, self._bus.lease("duty.jobs", self._holder), self._work)

    async def _work(self, lease: Lease) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                searching = group.create_task(self._search_orphans())
                await self._sweep(lease)
                searching.cancel()
        finally:
            self._watchlist = None

    async def _sweep(self, lease: Lease) -> None:
        watchlist = self._watchlist = JobWatchlist(self._region)
        position = StreamCursor(self._bus, bucket_stream(JOB_BUCKET), key_subject(JOB_BUCKET, "*.*"))
        while lease.valid(time.monotonic()):
            began = time.monotonic()
            try:
                await self._catch_up(position, watchlist)
                if watchlist.old(time.time()):
                    await self.republish(watchlist)
                await self.forget(watchlist, time.time())
                if time.monotonic() >= self._collect_at:
                    await self._versions.collect(watchlist.versions(), time.time())
                    self._collect_at = time.monotonic() + COLLECT_EVERY_S
            except (BusError, BlobsDown) as error:
                log.warning("sweeping jobs failed; it is tried again", error=str(error))
                await asyncio.sleep(PAUSE)
            took = time.monotonic() - began
            await asyncio.sleep(max(SWEEP_EVERY_S, took / SWEEP_SHARE))

    async def _search_orphans(self) -> None:
        """Delete orphans at the start and daily. A task of its own, since it reads every blob's head."""
        while True:
            await asyncio.sleep(self._search_at - time.monotonic())
            pause = self._search_again_s
            try:
                at = time.time()
                versions = [version for version, _ in (await self._versions.stored()).values()]
                weights, uploaded = await self._versions.weights(), await self._versions.files()
                files = BundleFiles(self._blobs, versions, weights, at, uploaded)
                await self._orphans.delete(at, files.of)
                pause = ORPHANS_EVERY_S
            except PilotlightError as error:
                log.warning("blobs of forgotten jobs are looked for later", error=str(error))
            except Exception:
                log.exception("blobs of forgotten jobs are looked for later")
            self._search_at = time.monotonic() + pause

    async def _record(self, key: str) -> bytes | None:
        record = await self._kv.read(key)
        return record.data if record is not None and not record.gone else None

    async def _catch_up(self, position: StreamCursor, watchlist: JobWatchlist) -> None:
        start = len(key_subject(JOB_BUCKET, ""))
        while records := (await position.read()).records:
            for record in records:
                _note(watchlist, record.subject[start:], record)

    async def republish(self, watchlist: JobWatchlist) -> None:
        """Publish the jobs that the work queue does not name. Raises BusError."""
        published = {note.id for note in await self._published_notes()}
        for flow, jobs in watchlist.missing(published, time.time()).items():
            notes = [note for key, note in jobs if await self._stands(key, watchlist)]
            for first in range(0, len(notes), NOTES_AT_ONCE):
                part = tuple(notes[first : first + NOTES_AT_ONCE])
                await self._bus.store(flow, JobsStored(jobs=part), id=token())
            if notes:
                self._told_again += len(notes)
                log.info("jobs were published again", flow=flow, jobs=len(notes))

    async def _published_notes(self) -> Iterable[JobNote]:
        return [
            note
            async for stored in self._bus.read_stream(JOB_STREAM, f"jobs.{self._region}.>")
            if isinstance(stored.message, JobsStored)
            for note in stored.message.jobs
        ]

    async def _stands(self, key: str, watchlist: JobWatchlist) -> bool:
        """Whether the job is unfinished; one that just ended has no message."""
        record = await self._kv.read(key)
        if record is None or record.gone:
            watchlist.gone(key)
            return False
        if (seen := _read(key, record)) is None:
            watchlist.gone(key)
        return seen is not None and not seen.state.terminal

    async def forget(self, watchlist: JobWatchlist, at: float) -> None:
        """Delete blobs that are due at the unix second `at`. Raises BusError and BlobsDown."""
        due = deque(watchlist.forgettable(at))
        try:
            while due:
                await self._forget_one(watchlist, *due[0])
                due.popleft()
        finally:
            for key, tenant, digests in due:
                watchlist.postpone(key, tenant, digests, at + FORGET_AFTER_S)

    async def _forget_one(self, watchlist: JobWatchlist, key: str, tenant: str, digests: tuple[str, ...]) -> None:
        record = await self._kv.read(key)
        if record is None or record.gone:
            for digest in digests:
                await self._blobs.delete(tenant, digest)
        elif (seen := _read(key, record)) is not None:
            watchlist.see(key, seen, time.time())


_decoder = msgspec.msgpack.Decoder(WatchedJob)


def _note(watchlist: JobWatchlist, key: str, record: StreamMessage) -> None:
    if record.gone:
        watchlist.gone(key)
    elif (seen := _read(key, record)) is not None:
        watchlist.see(key, seen, record.at)


def _read(key: str, record: StreamMessage) -> WatchedJob | None:
    try:
        return _decoder.decode(record.data)
    except msgspec.DecodeError as error:
        log.warning("a job's record cannot be read", key=key, error=str(error))
        return None
