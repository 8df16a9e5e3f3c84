"""Stores results of jobs: in the record while there is room, else in the blob store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import structlog

from pilotlight_core.host.blobs import BlobsDown, BlobsErased, BlobStore
from pilotlight_core.model.records.jobs import BlobRef, JobError, JobRecord
from pilotlight_gateway.jobs import job_payloads
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota, StorageCharge

STORE_AGAIN_S = 1.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class StoredOutput:
    """A stored output, and its charge."""

    output: bytes
    """As the record has it; b"" if it is a blob."""
    blob: BlobRef | None = None
    charge: StorageCharge | None = None


@dataclass(frozen=True, kw_only=True)
class JobResults:
    """Counts and stores results. `wall`: unix seconds."""

    blobs: BlobStore
    quota: JobStorageQuota
    wall: Callable[[], float]
    store_again_s: float = STORE_AGAIN_S

    async def store(self, job: JobRecord, output: bytes) -> StoredOutput:
        """Store the output (msgpack) of the job's run, however long the blob store is away.

        That of a tenant that was erased is dropped.
        """
        charge, fits = await self._fit(job, len(output), job_payloads.OUTPUT_INLINE)
        if fits:
            return StoredOutput(output=output, charge=charge)
        charge = await self.quota.count(job.tenant, len(output), self._kept_until(job))
        while True:
            try:
                blob = await job_payloads.store_payload(self.blobs, job.tenant, job.id, job.run, output)
                return StoredOutput(output=b"", blob=blob, charge=charge)
            except BlobsErased:
                self.quota.give_back(charge)
                return StoredOutput(output=b"")
            except BlobsDown as error:
                log.warning("a job's result waits for the blob store", job=job.id, error=str(error))
                await asyncio.sleep(self.store_again_s)

    async def drop(self, job: JobRecord, stored: StoredOutput) -> None:
        """Delete an output whose job another gateway has."""
        if stored.charge is not None:
            self.quota.give_back(stored.charge)
        if stored.blob is not None:
            with contextlib.suppress(BlobsDown):
                await self.blobs.delete(job.tenant, stored.blob.sha256)

    async def fit_error(self, job: JobRecord, error: JobError) -> JobError:
        """The error, or the beginning of its text where the record has no room."""
        size = len(error.detail) + len(error.traceback)
        if (await self._fit(job, size, size))[1]:
            return error
        return msgspec.structs.replace(error, detail=error.detail[: job_payloads.COUNTED], traceback="")

    async def _fit(self, job: JobRecord, size: int, most: int) -> tuple[StorageCharge | None, bool]:
        """The charge of `size` bytes, if any, and whether the record has room for them."""
        if size <= job_payloads.COUNTED or size > most:
            return None, size <= job_payloads.COUNTED
        charge = await self.quota.fit(job.tenant, size, self._kept_until(job))
        return charge, charge is not None

    def _kept_until(self, job: JobRecord) -> float:
        return self.wall() + job.keep_s
