"""A tenant's batches on a real bus, and whoever drives them: for tests of the driver and of its duty."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from pilotlight_core.bus import Bus, WrongRevision
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobNote
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.batches import BatchQuery, BatchRecord, BatchState
from pilotlight_core.model.records.jobs import FailurePoint, JobError, JobRecord, JobState, RunnerIdentity
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.batches.bus_batches import BusBatches
from pilotlight_gateway.duties.batch_driver import BatchDependencies
from pilotlight_gateway.duties.batch_duty import BatchDuty
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_service import JobService
from tests.gateway.batches.makers import version
from tests.waiting import until_found

ALL = frozenset(str(state) for state in JobState if state.terminal)
ME = RunnerIdentity("test", "test-1")


class Platform:
    """A tenant's batches, and a function whose jobs a test ends by hand."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.tenant = f"t{token(8)}"
        self.blobs = MemoryBlobs()
        self.jobs = BusJobs(bus)
        self.store = BusBatches(bus)
        self.desk = BatchService(self.store, JobService(self.jobs, blobs=self.blobs), blobs=self.blobs)
        self.told: list[str] = []
        self.runs = False
        """Whether a job ends as soon as it is told of."""
        self._ends: set[asyncio.Task[None]] = set()
        self.ground = BatchDependencies(
            bus=bus, batches=self.store, jobs=self.jobs, blobs=self.blobs, publish=self.tell, region="local"
        )

    async def submit(self, count: int, **more: Any) -> BatchRecord:
        """A batch of so many inputs."""

        async def body() -> AsyncIterator[bytes]:
            yield b"\n".join(msgspec.json.encode({"input": {"name": str(number)}}) for number in range(count))

        query = BatchQuery(function="shop.hello", **more)
        return await self.desk.submit(self.tenant, version(self.tenant), query, body())

    def tell(self, _flow: str, note: JobNote) -> None:
        self.told.append(note.id)
        if self.runs:
            task = asyncio.get_running_loop().create_task(self.end(note.id))
            self._ends.add(task)
            task.add_done_callback(self._ends.discard)

    async def start(self, job: str) -> None:
        """As its home does."""
        found = await self.jobs.read(self.tenant, job)
        assert found is not None
        started = jobs.started(found.job, ME, job, 1, found.job.created_at)
        assert started is not None
        await self.jobs.update(started, found.revision)

    async def end(self, job: str, code: str = "") -> None:
        """A job ends; with a code it fails."""
        found = await self.jobs.read(self.tenant, job)
        if found is None or found.job.state.terminal:
            return
        at = found.job.created_at
        if code:
            done = jobs.failed(found.job, FailurePoint.FINAL, JobError(code=code, detail="no"), at)
        else:
            done = jobs.succeeded(found.job, at, output=found.job.input)
        try:
            await self.jobs.update(done, found.revision)
        except WrongRevision:
            await self.end(job, code)

    async def until(self, record: BatchRecord, state: BatchState) -> BatchRecord:
        """The batch, once it is so."""

        async def there() -> BatchRecord | None:
            found = await self.desk.find(self.tenant, record.id)
            return found if found.state is state else None

        return await until_found(there)

    async def until_told(self, count: int) -> list[str]:
        """The jobs of which the work queue was told, once they are so many."""

        async def told() -> list[str] | None:
            return self.told if len(self.told) >= count else None

        return await until_found(told)

    async def results(self, record: BatchRecord, states: frozenset[str] = ALL) -> list[tuple[int, str, Any]]:
        async def render(_: JobRecord, output: bytes) -> bytes:
            return msgspec.json.encode(msgspec.msgpack.decode(output))

        found = self.desk.results(record, render, states)
        return [
            (result.index, result.state, None if result.output is None else msgspec.json.decode(result.output))
            async for result in found
        ]

    @asynccontextmanager
    async def driving(self) -> AsyncIterator[None]:
        """The duty, for as long as the block lasts."""
        duty = asyncio.ensure_future(BatchDuty(self.bus, self.ground, holder=token(8)).run())
        try:
            yield
        finally:
            duty.cancel()
            await asyncio.wait([duty])
