"""Finds blobs of jobs and batches that are forgotten, by listing the store.

`JobSweeper` deletes the blobs of jobs that are forgotten while it runs, `BatchDuty` the inputs of expired batches. What
remains is found here: what was forgotten while no duty ran, the result of a run that lost its job, and the input of a
submission that was not confirmed. Each blob names its job or batch in its head, however small it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.blobs.blob_port import BlobInfo
from pilotlight_core.model.records.batches import BatchRecord
from pilotlight_core.model.records.jobs import BlobRef, JobState, job_key
from pilotlight_gateway.batches.batch_manifest import read_chunks
from pilotlight_gateway.jobs import job_payloads

YOUNG_S = 3600.0
"""What is kept for less may be of a job or a batch whose record is just being written."""

log = structlog.get_logger(__name__)

ReadJob = Callable[[str], Awaitable[bytes | None]]
"""The record under a key as it stands; None: there is none."""
ReadBatch = Callable[[str, str], Awaitable[tuple[BatchRecord, int] | None]]
"""A tenant's batch as it stands; see `BatchStore.read`."""


class _Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What of a job's record says whether it needs a blob."""

    state: JobState = JobState.QUEUED
    input_blob: BlobRef | None = None
    output_blob: BlobRef | None = None

    def needs(self, sha256: str) -> bool:
        return not self.state.terminal or sha256 in (
            ref.sha256 for ref in (self.input_blob, self.output_blob) if ref is not None
        )


_decoder = msgspec.msgpack.Decoder(_Holder)


class Orphans:
    """Looks for them in a store, over records as they stand."""

    def __init__(self, blobs: BlobStore, job: ReadJob, batch: ReadBatch) -> None:
        self._blobs = blobs
        self._job = job
        self._batch = batch
        self._tenant = ""
        self._needed: dict[str, frozenset[str] | None] = {}
        """batch of that tenant -> the digests that it needs; None: that is not known, so all."""

    async def delete(self, at: float) -> int:
        """Delete them, as of the unix second `at`; how many there were. Raises as the bus and the blob store do."""
        deleted = 0
        listed: Any = self._blobs.listed()
        async with aclosing(listed):
            async for one in listed:
                if at - one.at >= YOUNG_S and await self._is_orphan(one):
                    await self._blobs.delete(one.tenant, one.sha256)
                    deleted += 1
        if deleted:
            log.info("blobs of forgotten jobs and batches were deleted", blobs=deleted)
        return deleted

    async def _is_orphan(self, one: BlobInfo) -> bool:
        try:
            owner = job_payloads.owner_of(await self._blobs.head(one.tenant, one.sha256, job_payloads.LONGEST_HEAD))
        except BlobMissing:
            return False
        if owner is None:
            return False
        if owner.startswith("call_"):
            return await self._is_jobs_orphan(one, owner)
        if one.tenant != self._tenant:
            self._tenant, self._needed = one.tenant, {}
        if owner not in self._needed:
            self._needed[owner] = await self._needed_by(one.tenant, owner)
        needed = self._needed[owner]
        return needed is not None and one.sha256 not in needed

    async def _is_jobs_orphan(self, one: BlobInfo, job: str) -> bool:
        record = await self._job(job_key(one.tenant, job))
        try:
            return record is None or not _decoder.decode(record).needs(one.sha256)
        except msgspec.DecodeError:
            return False  # whoever can read the record may need it

    async def _needed_by(self, tenant: str, batch: str) -> frozenset[str] | None:
        try:
            found = await self._batch(tenant, batch)
            if found is None:
                return frozenset()
            chunks = await read_chunks(self._blobs, tenant, found[0].chunks)
        except (BlobMissing, msgspec.DecodeError):
            return None  # its record, and with that the batch, is forgotten in time
        return frozenset({found[0].chunks.sha256, *(chunk.blob.sha256 for chunk in chunks)})
