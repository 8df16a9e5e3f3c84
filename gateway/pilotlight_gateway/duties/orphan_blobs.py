"""Finds and deletes blobs that no job, batch or version needs, by listing the store.

`JobSweeper` and `BatchDuty` delete blobs that expire while they run. This deletes what expired while no duty ran,
results of runs that lost their job, inputs of unconfirmed submissions, and files and artifacts of versions that are
gone. What a version needs stays, whatever it holds. Of anything else the head names its job or batch; without such a
head it is a file, an artifact or a manifest of a deploy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from pilotlight_core.host.blobs import BlobMissing, BlobStore, NoBlobStore
from pilotlight_core.host.blobs.blob_port import BlobInfo
from pilotlight_core.model.records.batches import BatchRecord
from pilotlight_core.model.records.jobs import BlobRef, JobState, job_key
from pilotlight_gateway.batches.batch_manifest import read_chunks
from pilotlight_gateway.jobs import job_payloads

YOUNG_S = 86_400.0
"""A younger blob's record may be about to be written: the upload of an app's artifacts may take hours."""

log = structlog.get_logger(__name__)

ReadJob = Callable[[str], Awaitable[bytes | None]]
"""The record of a key, if any."""
FilesOf = Callable[[str], Awaitable[frozenset[str] | None]]
"""As `BundleFiles.of`."""
ReadBatch = Callable[[str, str], Awaitable[tuple[BatchRecord, int] | None]]
"""As `BatchStore.read`."""
_UNREAD: frozenset[str] = frozenset({""})


class _Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a job's record that say which blobs it needs."""

    state: JobState = JobState.QUEUED
    input_blob: BlobRef | None = None
    output_blob: BlobRef | None = None

    def needs(self, sha256: str) -> bool:
        return not self.state.terminal or sha256 in (
            ref.sha256 for ref in (self.input_blob, self.output_blob) if ref is not None
        )


_decoder = msgspec.msgpack.Decoder(_Holder)


class Orphans:
    """Deletes the orphans of a blob store."""

    def __init__(self, blobs: BlobStore, job: ReadJob, batch: ReadBatch) -> None:
        self._blobs = blobs
        self._job = job
        self._batch = batch
        self._tenant = ""
        self._needed: dict[str, frozenset[str] | None] = {}
        """By batch of that tenant, the digests that it needs; None if unknown."""
        self._deployed: frozenset[str] | None = _UNREAD
        """What its versions need; None if unknown."""

    async def delete(self, at: float, of_versions: FilesOf) -> int:
        """Delete the orphans at the unix second `at`; returns their number. Raises BusError and BlobsDown.

        `of_versions` says which blobs a tenant's versions need.
        """
        deleted, self._tenant = 0, ""
        self._of_versions = of_versions
        listed: Any = self._blobs.listed()
        async with aclosing(listed):
            async for one in listed:
                if at - one.at < YOUNG_S:
                    continue
                try:
                    if await self._is_orphan(one, at):
                        await self._blobs.delete(one.tenant, one.sha256)
                        deleted += 1
                except NoBlobStore as error:
                    log.error("a blob cannot be opened, and stays", tenant=one.tenant, why=error.detail)
        if deleted:
            log.info("blobs that nothing needs were deleted", blobs=deleted)
        return deleted

    async def _is_orphan(self, one: BlobInfo, at: float) -> bool:
        if one.tenant != self._tenant:
            self._tenant, self._needed, self._deployed = one.tenant, {}, _UNREAD
        if self._deployed is _UNREAD:
            self._deployed = await self._of_versions(one.tenant)
        # Asked first, since a tenant's file may begin like the input of a job. If it is not known, any blob may be one.
        if self._deployed is None or one.sha256 in self._deployed:
            return False
        try:
            owner = job_payloads.owner_of(await self._blobs.head(one.tenant, one.sha256, job_payloads.LONGEST_HEAD))
        except BlobMissing:
            return False
        if owner is not None and await self._is_needed_by(owner, one):
            return False
        # It may have been uploaded again since it was listed, for a deploy that is under way.
        present = await self._blobs.stored(one.tenant, [one.sha256])
        return one.sha256 in present and at - present[one.sha256].at >= YOUNG_S

    async def _is_needed_by(self, owner: str, one: BlobInfo) -> bool:
        """Whether a job or batch needs the blob, or may need it."""
        if owner.startswith("call_"):
            return not await self._is_jobs_orphan(one, owner)
        if owner not in self._needed:
            self._needed[owner] = await self._needed_by(one.tenant, owner)
        needed = self._needed[owner]
        return needed is None or one.sha256 in needed

    async def _is_jobs_orphan(self, one: BlobInfo, job: str) -> bool:
        record = await self._job(job_key(one.tenant, job))
        try:
            return record is None or not _decoder.decode(record).needs(one.sha256)
        except msgspec.DecodeError:
            return False  # a newer release may read the record, and need the blob

    async def _needed_by(self, tenant: str, batch: str) -> frozenset[str] | None:
        try:
            found = await self._batch(tenant, batch)
            if found is None:
                return frozenset()
            chunks = await read_chunks(self._blobs, tenant, found[0].chunks)
        except (BlobMissing, NoBlobStore, msgspec.DecodeError):
            return None  # the batch's record expires in time
        return frozenset({found[0].chunks.sha256, *(chunk.blob.sha256 for chunk in chunks)})
