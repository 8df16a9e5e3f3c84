"""Where jobs are stored (`bus_jobs.BusJobs`, in memory `memory_jobs.MemoryJobs`), and where they wait to run
(`job_queue_client.JobQueueClient`, in memory `memory_jobs.MemoryJobQueue`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

import msgspec

from pilotlight_core.model.messages.job_messages import JobNote, JobPlace
from pilotlight_core.model.records.jobs import JobRecord, RunnerIdentity
from pilotlight_gateway.idempotency.key_record_port import Doorbell

PAGE_AT_MOST = 1_000
SCAN_AT_MOST = 5_000
"""Records that are looked at for one page of a listing."""


PublishJob = Callable[[str, JobNote], None]
"""`JobQueue.publish`, for those who need no more of it."""


class StoredJob(NamedTuple):
    """A record as it stands, and the revision that wrote it."""

    job: JobRecord
    revision: int


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of jobs, the last changed first."""

    jobs: tuple[JobRecord, ...]
    before: int = 0
    """Where the next page goes on; 0: there is none. A page may be short, or empty, and yet have a next one."""


class JobStore(Protocol):
    """Records of jobs with compare-and-set.

    All verbs raise BusError when it is not known what stands there.
    """

    async def create(self, job: JobRecord) -> StoredJob:
        """Store a new job; what stands there then: itself, or the one that was there before.

        Raises:
            Unavailable: `overloaded`, there is no room.
        """
        ...

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        """What stands there now, as the store's leader has it."""
        ...

    async def update(self, job: JobRecord, revision: int) -> int:
        """Replace what has `revision`; the new one. What has ended is forgotten `keep_s` later.

        Raises:
            WrongRevision: something else stands there.
        """
        ...

    async def page(
        self, tenant: str, *, limit: int, before: int = 0, wanted: Callable[[JobRecord], bool] = lambda _: True
    ) -> JobPage:
        """The tenant's jobs, the last changed first, from `before` on; without inputs and results."""
        ...

    async def secret(self) -> bytes:
        """32 random bytes that all gateways share; the first gateway to ask makes them."""
        ...

    async def is_alive(self, runner: RunnerIdentity) -> bool:
        """Whether that gateway process holds its lease."""
        ...

    def watch(self, tenant: str, job: str) -> AbstractAsyncContextManager[Doorbell]:
        """Listen for changes of a record."""
        ...


class JobQueue(Protocol):
    """The work queue of stored jobs, as the side sees it that accepts them. No verb raises."""

    def publish(self, flow: str, note: JobNote) -> None:
        """A job of the flow (its subject) was stored: its home hears of it soon. What is lost the sweeper finds."""
        ...

    async def locate(self, job: JobRecord, flow: str) -> JobPlace:
        """Where the job is in its queue; an empty place if its home does not say within a second."""
        ...

    async def stop(self, job: JobRecord) -> None:
        """Ask the gateway that runs the job to cancel it, within a second."""
        ...
