"""Publishes stored jobs to the work queue: the first of a flow at once, then together those that came meanwhile.

A job is accepted before it is published. `JobSweeper` publishes from the records what is lost here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from pilotlight_core.bus import Bus, BusError, StoreRefused
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobNote, JobsStored

NOTES_AT_ONCE = 256
"""Jobs in one message."""
PAUSE_S = 0.02
"""Between two messages of a flow: each costs as much as several jobs."""
WAITING_AT_MOST = 50_000
"""Over all flows; the sweeper publishes what is beyond."""

log = structlog.get_logger(__name__)


class JobPublisher:
    """Publishes notes of jobs while `running` is open."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: dict[str, deque[JobNote]] = {}
        self._count = 0
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Publish until the block ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None

    def publish(self, flow: str, note: JobNote) -> None:
        """Publish a stored job of a flow (its subject), soon."""
        if self._group is None or self._count >= WAITING_AT_MOST:
            return
        self._count += 1
        if (waiting := self._waiting.get(flow)) is not None:
            waiting.append(note)
        else:
            self._waiting[flow] = deque([note])
            self._group.create_task(self._publish(flow))

    async def _publish(self, flow: str) -> None:
        waiting = self._waiting[flow]
        try:
            while waiting:
                notes = [waiting.popleft() for _ in range(min(len(waiting), NOTES_AT_ONCE))]
                self._count -= len(notes)
                await self._store(flow, JobsStored(jobs=tuple(notes)))
                if len(waiting) < NOTES_AT_ONCE:
                    await asyncio.sleep(PAUSE_S)
        finally:
            self._count -= len(waiting)
            del self._waiting[flow]

    async def _store(self, flow: str, message: JobsStored) -> None:
        try:
            await self._bus.store(flow, message, id=token())
        except StoreRefused as error:
            log.error("the work queue is full: jobs wait for the sweeper", flow=flow, error=str(error))
        except BusError as error:
            log.warning("jobs wait for the sweeper", flow=flow, jobs=len(message.jobs), error=str(error))
