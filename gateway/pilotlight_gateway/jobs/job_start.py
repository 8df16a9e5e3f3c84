r"""The start of a job's run: written into the job's record between the grant of its call and its sending.

    WAITING --held by limits--> HELD
       |--written, sent--> SENT --turned away, granted again--> (as from WAITING)
       \--written or maybe, not sent--> UNSENT --granted again, sent--> SENT

Each grant writes the start again, so the record names the run that was sent last. The record may have an UNSENT start
although nothing runs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import NamedTuple

import structlog

from pilotlight_core.bus import BusError
from pilotlight_core.model.messages.call_messages import Run
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import FailurePoint, RunnerIdentity
from pilotlight_gateway.calls.prepared_call import Go
from pilotlight_gateway.jobs.job_permit import JobPermit
from pilotlight_gateway.jobs.job_record_writer import JobRecordWriter
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota

log = structlog.get_logger(__name__)


class StartWrite(Enum):
    """What became of writing a start."""

    WRITTEN = auto()
    HELD = auto()
    """The tenant's limits or storage quota hold the run back; nothing is written."""
    LOST = auto()
    """Another process has written the record."""


class UnsentStart(Enum):
    """What the record says of a start that may have been written and was not sent."""

    STANDS = auto()
    NEVER = auto()
    """The start was not written, and cannot be any more."""
    LOST = auto()
    """Another process has written the record."""


class StartProgress(NamedTuple):
    """How far the starts of one job are. Each method is an outcome of a grant."""

    sent: bool = False
    """Whether any run was sent."""
    held_s: float = 0.0
    """Seconds for which the last grant was held back."""
    unsent: str = ""
    """The run whose start may have been written and that was not sent; "": none, or a later one was sent."""

    def when_sent(self) -> StartProgress:
        return StartProgress(sent=True)

    def when_unsent(self, run: str) -> StartProgress:
        return self._replace(held_s=0.0, unsent=run)

    def when_held(self, held_s: float) -> StartProgress:
        return self._replace(held_s=held_s)


class JobStart:
    """The `StartHook` of a job's call. `on_first_sent` is called when the first run is sent."""

    def __init__(
        self,
        record: JobRecordWriter,
        permit: JobPermit,
        quota: JobStorageQuota,
        *,
        me: RunnerIdentity,
        wall: Callable[[], float],
        on_first_sent: Callable[[], None],
    ) -> None:
        self._record = record
        self._permit = permit
        self._quota = quota
        self._me = me
        self._wall = wall
        self._on_first_sent = on_first_sent
        self._writing: asyncio.Task[None] | None = None
        self._abandoned = False
        self.progress = StartProgress()
        self.time_limit: asyncio.Timeout | None = None
        """Of the wait for the start; lifted once that is written."""

    def open_gate(self, run: Run, go: Go) -> None:
        """See `StartHook`."""
        self._begin(self._open(run, go))

    async def settled(self) -> None:
        """Wait until a write in progress is over."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def abandon(self) -> None:
        """The gateway ends or is not the job's home any more: take back a start that is not sent."""
        self._abandoned = True
        if self.progress.unsent and (self._writing is None or self._writing.done()):
            self._begin(self._take_back())

    async def find_unsent(self) -> UnsentStart:
        """Find out whether the record has the start that was not sent, however long the bus is away.

        Raises:
            BusError: the record does not have it, and may still come to have it.
        """
        while True:
            if not await self._record.refresh():
                return UnsentStart.LOST
            if (self._record.job.runner, self._record.job.run) == (self._me, self.progress.unsent):
                return UnsentStart.STANDS
            if self._record.job.state is not jobs.JobState.QUEUED:
                return UnsentStart.LOST
            # A write that was given up may still be on its way: it must not meet the revision that it expects.
            if await self._record.write(self._record.job):
                return UnsentStart.NEVER

    def _begin(self, writing: Coroutine[None, None, None]) -> None:
        self._writing = asyncio.get_running_loop().create_task(writing)
        self._writing.add_done_callback(self._log_crash)

    async def _open(self, run: Run, go: Go) -> None:
        """On any error, the run's home gets the grant back."""
        try:
            written, held_s = await self._write(run)
            if written is StartWrite.HELD:
                self.progress = self.progress.when_held(held_s)
                go(allowed=False)
                return
            # The record now written may be our start with a wish to cancel it.
            sent = go(allowed=written is StartWrite.WRITTEN)
        except Exception as error:
            # It may be written or not. If it is, no other home will start it, and we know that it was not sent.
            bug = None if isinstance(error, BusError) else error
            log.warning("a job's start is not confirmed", job=self._record.job.id, error=str(error), exc_info=bug)
            sent = False
            self.progress = self.progress.when_unsent(run.call_id)
            go(allowed=False)
        if sent:
            first = not self.progress.sent
            self.progress = self.progress.when_sent()
            if first:
                self._on_first_sent()
        else:
            self.progress = self.progress.when_unsent(run.call_id)
            await self._take_back()

    async def _write(self, run: Run) -> tuple[StartWrite, float]:
        """With `HELD`, the seconds until the next try. Raises as store and limits do."""
        held_s = await self._quota.pause(self._record.job.tenant) or await self._permit.take()
        if held_s:
            return StartWrite.HELD, held_s
        begun = jobs.started(self._record.job, self._me, run.call_id, run.grant_number, self._wall())
        if begun is None or not await self._record.replace(begun):
            return StartWrite.LOST, 0.0
        if self.time_limit is not None:
            with contextlib.suppress(RuntimeError):  # its waiter is gone
                self.time_limit.reschedule(None)
        return StartWrite.WRITTEN, 0.0

    async def _take_back(self) -> None:
        """Queue the job again if its start was written and not sent: no other gateway would."""
        if self._abandoned and await self.find_unsent() is UnsentStart.STANDS:
            job_error = jobs.JobError(code="container_died", detail="its gateway was not its home any more")
            await self._record.write_end(
                lambda record: jobs.failed(record, FailurePoint.NOT_STARTED, job_error, self._wall())
            )

    def _log_crash(self, writing: asyncio.Task[None]) -> None:
        if not writing.cancelled() and (error := writing.exception()) is not None:
            log.error("a job's start is not seen through", job=self._record.job.id, exc_info=error)
