"""A job's record, read and written by compare-and-set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from pilotlight_core.bus import BusError, WrongRevision
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_gateway.jobs.job_port import JobStore, StoredJob

WRITE_AGAIN_S = 0.25
LAST_WRITE_S = 2.0
"""For the last write when a gateway ends."""

log = structlog.get_logger(__name__)


class JobRecordWriter:
    """The record as it was last seen."""

    def __init__(self, store: JobStore, tenant: str, job: str) -> None:
        self._store = store
        self._tenant = tenant
        self._name = job
        self._stored: StoredJob | None = None

    @property
    def job(self) -> JobRecord:
        """The record, once it was read."""
        assert self._stored is not None  # noqa: S101 - it was read first
        return self._stored.job

    @property
    def ended(self) -> bool:
        """Whether the job has ended or is unknown."""
        return self._stored is None or self._stored.job.state.terminal

    async def read(self) -> bool:
        """Read the record; False: it is forgotten, and `job` stays.

        Raises:
            BusError: it is not known what is stored.
        """
        stored = await self._store.read(self._tenant, self._name)
        if stored is not None:
            self._stored = stored
        return stored is not None

    async def refresh(self) -> bool:
        """As `read`, however long the bus is away."""
        while True:
            try:
                return await self.read()
            except BusError as error:
                log.debug("a job's record is not seen", job=self._name, error=str(error))
                await asyncio.sleep(WRITE_AGAIN_S)

    async def replace(self, job: JobRecord) -> bool:
        """Write `job` unless the record was changed since it was last seen; False: it was, and nothing is written.

        Raises:
            BusError: it may be written or not.
        """
        assert self._stored is not None  # noqa: S101 - as above
        try:
            self._stored = StoredJob(job, await self._store.update(job, self._stored.revision))
        except WrongRevision:
            return False
        return True

    async def write(self, job: JobRecord) -> bool:
        """As `replace`, and read the record if it was changed."""
        written = await self.replace(job)
        if not written:
            await self.refresh()
        return written

    async def write_end(self, change: Callable[[JobRecord], JobRecord]) -> bool:
        """Write the end of our run, however long the bus is away; False: the job is not ours any more.

        A cancelled caller still tries for `LAST_WRITE_S`.
        """
        writing = asyncio.get_running_loop().create_task(self._write_end(change))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait([writing], timeout=LAST_WRITE_S)
            if writing.done() and not writing.cancelled():
                writing.exception()  # the next home has the job: nobody is left to raise it to
            raise
        finally:
            writing.cancel()

    async def _write_end(self, change: Callable[[JobRecord], JobRecord]) -> bool:
        ours = (self.job.runner, self.job.run, self.job.state)
        while True:
            try:
                if await self.replace(change(self.job)):
                    return True
            except BusError as error:
                log.warning("a job's end waits for the bus", job=self._name, error=str(error))
                await asyncio.sleep(WRITE_AGAIN_S)
            # Written by ourselves without our knowing, or by a gateway that took us for dead: it is not ours now.
            if not await self.refresh() or (self.job.runner, self.job.run, self.job.state) != ours:
                return False
