"""Jobs in memory, scripted by fields, for tests and for services without a bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from pilotlight_core.bus import BusError, WrongRevision
from pilotlight_core.model.messages.job_messages import JobNote, JobPlace
from pilotlight_core.model.records.jobs import JobRecord, RunnerIdentity, job_key
from pilotlight_gateway.idempotency.memory_key_records import MemoryDoorbell
from pilotlight_gateway.jobs.job_port import JobPage, StoredJob


@dataclass(kw_only=True)
class MemoryJobs:
    """Compare-and-set over a dictionary. Nothing is ever forgotten."""

    gone: set[RunnerIdentity] = field(default_factory=set)
    """Runners that count as dead."""
    error: BusError | None = None
    """Raised by every verb."""
    writes: list[JobRecord] = field(default_factory=list)
    _kept: dict[str, StoredJob] = field(default_factory=dict)
    _revision: int = 0
    bells: set[asyncio.Event] = field(default_factory=set)
    """Of watchers."""

    async def create(self, job: JobRecord) -> StoredJob:
        self._may_fail()
        if (there := self._kept.get(job.key)) is not None:
            return there
        return StoredJob(job, self._write(job))

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        self._may_fail()
        return self._kept.get(job_key(tenant, job))

    async def update(self, job: JobRecord, revision: int) -> int:
        self._may_fail()
        there = self._kept.get(job.key)
        if there is None or there.revision != revision:
            raise WrongRevision(f"{job.key} was changed by somebody else.")
        return self._write(job)

    async def page(
        self, tenant: str, *, limit: int, before: int = 0, wanted: Callable[[JobRecord], bool] = lambda _: True
    ) -> JobPage:
        self._may_fail()
        own = sorted((one for one in self._kept.values() if one.job.tenant == tenant), key=lambda one: -one.revision)
        found = [one for one in own if wanted(one.job) and (not before or one.revision < before)]
        more = len(found) > limit
        return JobPage(
            jobs=tuple(_listed(one.job) for one in found[:limit]), before=found[limit - 1].revision if more else 0
        )

    async def secret(self) -> bytes:
        self._may_fail()
        return b"s" * 32

    async def is_alive(self, runner: RunnerIdentity) -> bool:
        return runner not in self.gone

    @asynccontextmanager
    async def watch(self, tenant: str, job: str) -> AsyncIterator[MemoryDoorbell]:  # noqa: ARG002 - every bell rings
        event = asyncio.Event()
        self.bells.add(event)
        try:
            yield MemoryDoorbell(event)
        finally:
            self.bells.discard(event)

    def _may_fail(self) -> None:
        if self.error is not None:
            raise self.error

    def _write(self, job: JobRecord) -> int:
        self._revision += 1
        self.writes.append(job)
        self._kept[job.key] = StoredJob(job, self._revision)
        for bell in self.bells:
            bell.set()
        return self._revision


@dataclass(kw_only=True)
class MemoryJobQueue:
    """A queue that keeps what was asked of it."""

    place: JobPlace = field(default_factory=JobPlace)
    """Of every job."""
    published: list[tuple[str, JobNote]] = field(default_factory=list)
    stopped: list[JobRecord] = field(default_factory=list)

    def publish(self, flow: str, note: JobNote) -> None:
        self.published.append((flow, note))

    async def locate(self, job: JobRecord, flow: str) -> JobPlace:  # noqa: ARG002
        return self.place

    async def stop(self, job: JobRecord) -> None:
        self.stopped.append(job)


def _listed(job: JobRecord) -> JobRecord:
    return msgspec.structs.replace(job, input=b"", output=b"")
