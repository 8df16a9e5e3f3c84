"""Where jobs are stored, and where they wait to run.

The real ones are `bus_jobs.BusJobs` and `job_queue_client.JobQueueClient`; `memory_jobs` has both in memory.
"""

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
"""`JobQueue.publish` alone."""


class StoredJob(NamedTuple):
    """A record, and the revision that wrote it."""

    job: JobRecord
    revision: int


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, the last changed first."""

    jobs: tuple[JobRecord, ...]
    before: int = 0
    """Where the next page begins; 0: there is none. A short or empty page may have a next one."""


class JobStore(Protocol):
    """Records of jobs with compare-and-set. All verbs raise BusError: it is not known what is stored."""

    async def create(self, job: JobRecord) -> StoredJob:
        """Store a new job. Returns it, or the one that was stored under its id before.

        Raises:
            Unavailable: `overloaded`: no room.
        """
        ...

    async def read(self, tenant: str, job: str) -> StoredJob | None:
        """The record as the store's leader has it."""
        ...

    async def update(self, job: JobRecord, revision: int) -> int:
        """Replace what has `revision`; the new revision. A job that has ended is forgotten `keep_s` later.

        Raises:
            WrongRevision: the record has another one.
        """
        ...

    async def page(
        self, tenant: str, *, limit: int, before: int = 0, wanted: Callable[[JobRecord], bool] = lambda _: True
    ) -> JobPage:
        """The tenant's jobs from `before` on, without inputs and results."""
        ...

    async def secret(self) -> bytes:
        """32 random bytes that all gateways share, made at the first call."""
        ...

    async def is_alive(self, runner: RunnerIdentity) -> bool:
        """Whether a gateway process holds its lease."""
        ...

    def watch(self, tenant: str, job: str) -> AbstractAsyncContextManager[Doorbell]: ...


class JobQueue(Protocol):
    """The work queue as the accepting side uses it. No verb raises."""

    def publish(self, flow: str, note: JobNote) -> None:
        """Publish a stored job of a flow (its subject), soon. The sweeper finds what is lost."""
        ...

    async def locate(self, job: JobRecord, flow: str) -> JobPlace:
        """Where the job is in its queue; an empty place if its home does not answer within a second."""
        ...

    async def stop(self, job: JobRecord) -> None:
        """Ask the job's runner to cancel its run; waits at most a second."""
        ...
