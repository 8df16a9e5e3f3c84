"""Submits and changes batches, and reads their results."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from pilotlight_core.bus import BusError, retry_conflicts
from pilotlight_core.host.blobs import BlobMissing, BlobStore, MemoryBlobs
from pilotlight_core.model.errors import BadInput, Conflict, DeadlineExceeded, NotFound, TooMuch, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.batches import (
    ID_PATTERN,
    LONGEST_LIFE_S,
    SHORTEST_LIFE_S,
    BatchForm,
    BatchInfo,
    BatchItem,
    BatchQuery,
    BatchRecord,
    BatchState,
    ItemResult,
    cancel_batch,
    job_of,
    resume_batch,
)
from pilotlight_core.model.records.jobs import JobRecord, JobState, keyed_job_id
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.batches.batch_manifest import ManifestWriter, read_chunks, read_items
from pilotlight_gateway.batches.batch_port import BatchStore, ChangeBatch, MemoryBatches
from pilotlight_gateway.batches.input_lines import DecodeLine, InputLineReader
from pilotlight_gateway.jobs.job_service import KEPT_S, RECORD_BYTES, JobService
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.storage_quota.job_quota import StorageCharge

BATCHES_PER_TENANT = 100
"""Stored batches per tenant, including finished ones until they expire."""
SUBMIT_SECONDS = 600.0
"""Limit of an upload: each line may be expensive to check."""
READ_AT_A_TIME = 32
NULL = b"null"
RenderOutput = Callable[[JobRecord, bytes], Awaitable[bytes]]
"""The JSON of a job's output."""
BATCH_ID = re.compile(ID_PATTERN)


class BatchService:
    """Batches. Every method finds only those of the given tenant."""

    def __init__(
        self,
        store: BatchStore | None = None,
        jobs: JobService | None = None,
        *,
        region: str = "local",
        blobs: BlobStore | None = None,
        schemas: VersionSchemas | None = None,
        validators: Validators | None = None,
        keep_s: float = KEPT_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store: BatchStore = MemoryBatches() if store is None else store
        self._jobs = JobService() if jobs is None else jobs
        self._blobs: BlobStore = MemoryBlobs() if blobs is None else blobs
        self._schemas = VersionSchemas(self._blobs) if schemas is None else schemas
        self._validators = Validators() if validators is None else validators
        self._keep_s = keep_s
        self._region = region
        self._wall = wall
        self._uploads = TenantSlots(8, "batches are being submitted", of_tenant=2, retry_after=2.0)

    # -- submitting ----------------------------------------------------------------------------------------------

    async def submit(
        self,
        tenant: str,
        version: VersionRecord,
        query: BatchQuery,
        body: AsyncIterator[bytes],
        key: str = "",
        *,
        form: BatchForm | None = None,
        decode: DecodeLine | None = None,
    ) -> BatchRecord:
        """Check every line and store the batch, which then runs even if this process ends.

        `key` is an Idempotency-Key: an equal batch that was submitted under it is returned.
        `decode` reads the lines of a batch of requests, whose `form` its record keeps.

        Raises:
            BadInput: names the line and the field; `idempotency_key_reused` if the key stands for another batch.
            TooMuch: the tenant has too many batches, uploads or stored bytes.
            Unavailable: the store is full or cannot be reached.
            DeadlineExceeded: the upload took more than `SUBMIT_SECONDS`.
        """
        if not SHORTEST_LIFE_S <= query.expires_in_s <= min(LONGEST_LIFE_S, self._keep_s):
            raise BadInput(
                f"expires_in_s: expected {SHORTEST_LIFE_S:g} to {LONGEST_LIFE_S:g} seconds.", field="expires_in_s"
            )
        batch = self._id(tenant, key)
        # A repetition creates no batch.
        repeats = bool(key) and await self._store.read(tenant, batch) is not None
        if not repeats and len(await self._store.all(tenant)) >= BATCHES_PER_TENANT:
            raise TooMuch(f"There may be {BATCHES_PER_TENANT} batches.", retry_after=60.0)
        try:
            with self._uploads.slot(tenant):
                async with asyncio.timeout(SUBMIT_SECONDS):
                    return await self._take(tenant, batch, version, query, body, form, decode, repeats=repeats)
        except TimeoutError:
            raise DeadlineExceeded(f"The batch did not come and was not checked in {SUBMIT_SECONDS:g} s.") from None

    async def _take(
        self,
        tenant: str,
        batch: str,
        version: VersionRecord,
        query: BatchQuery,
        body: AsyncIterator[bytes],
        form: BatchForm | None,
        decode: DecodeLine | None,
        *,
        repeats: bool,
    ) -> BatchRecord:
        method = await self._schemas.method(version, query.method)
        lines = InputLineReader(
            lambda arguments: self._validators.check_input(version.id, method, arguments, {}), decode
        )
        writer = ManifestWriter(self._blobs, tenant, f"{batch} {token()}")
        digest = hashlib.sha256(f"{version.id}\0{method.name}\0".encode())
        try:
            async for piece in body:
                digest.update(piece)
                await writer.add(await asyncio.to_thread(lines.feed, piece))
            await writer.add(await asyncio.to_thread(lines.finish))
            chunks = await writer.finish()
            room = 0 if repeats else lines.items * RECORD_BYTES + writer.bytes
            until = self._wall() + query.expires_in_s + version.spec.timeout + self._keep_s
            counted = await self._jobs.quota.take(tenant, room, until)
        except BaseException:
            await asyncio.shield(writer.drop())
            raise
        at = self._wall()
        record = BatchRecord(
            id=batch,
            tenant=tenant,
            function=f"{version.tenant}:{version.app}.{version.function}",
            version=version.id,
            ref=version.ref,
            method=method.name,
            label=query.label,
            fingerprint=digest.digest(),
            created_at=at,
            life_s=query.expires_in_s,
            expires_at=at + query.expires_in_s,
            keep_s=self._keep_s,
            retries=version.spec.retries,
            idempotent=version.spec.idempotent,
            timeout=version.spec.timeout,
            total=lines.items,
            chunks=chunks,
            openai=form,
            traceparent=query.traceparent,
        )
        return await self._stored(record, writer, counted)

    async def _stored(self, record: BatchRecord, writer: ManifestWriter, counted: StorageCharge) -> BatchRecord:
        """The stored batch of this id; if another one, these inputs and their charge are deleted."""
        try:
            found = await self._store.create(record)
        except Unavailable as error:
            if not isinstance(error, BusError):  # otherwise the record may be stored
                self._jobs.quota.give_back(counted)
                await writer.drop()
            raise
        if found.chunks == record.chunks:  # not by identity: after a lost confirmation the record was read back
            return found
        self._jobs.quota.give_back(counted)
        await writer.drop()
        if found.fingerprint != record.fingerprint:
            raise BadInput(
                "Idempotency-Key: it stands for another batch.",
                code="idempotency_key_reused", field="Idempotency-Key",
            )  # fmt: skip
        return found

    def _id(self, tenant: str, key: str) -> str:
        return f"batch_{keyed_job_id(self._region, tenant, 'batch-key', key)[-20:] if key else token()}"

    # -- reading -------------------------------------------------------------------------------------------------

    async def all(self, tenant: str) -> list[BatchRecord]:
        """The tenant's batches, newest first."""
        return sorted(await self._store.all(tenant), key=lambda record: (-record.created_at, record.id))

    async def find(self, tenant: str, batch: str) -> BatchRecord:
        """Raises NotFound for a batch that the tenant does not have."""
        found = await self._store.read(tenant, batch) if BATCH_ID.fullmatch(batch) else None
        if found is None:
            raise _no_batch(batch)
        return found[0]

    async def results(
        self, record: BatchRecord, render: RenderOutput, states: frozenset[str]
    ) -> AsyncIterator[ItemResult]:
        """Results of ended items in one of `states`, in order, with the JSON that `render` makes of outputs."""
        blobs = self._blobs
        for chunk in await read_chunks(blobs, record.tenant, record.chunks):
            items = await read_items(blobs, record.tenant, chunk)
            for start in range(0, len(items), READ_AT_A_TIME):
                part = items[start : start + READ_AT_A_TIME]
                found = await asyncio.gather(*(self._job(record, item) for item in part))
                for item, job in zip(part, found, strict=True):
                    if job is not None and job.state.terminal and job.state in states:
                        yield await self._result(item, job, render)
                if all(job is None for job in found) and not record.state.over:
                    return  # later items are not submitted yet

    async def _job(self, record: BatchRecord, item: BatchItem) -> JobRecord | None:
        return await self._jobs.find(record.tenant, job_of(self._region, record.tenant, record.id, item.index))

    async def _result(self, item: BatchItem, job: JobRecord, render: RenderOutput) -> ItemResult:
        output: msgspec.Raw | None = None
        error = None if job.error is None else {"code": job.error.code, "detail": job.error.detail}
        if job.state is JobState.SUCCEEDED:
            error = None
            try:
                text = await render(job, await self._jobs.output(job))
                output = None if text == NULL else msgspec.Raw(text)
            except BlobMissing:
                error = {"code": "answer_not_kept", "detail": "The output is not kept any more."}
        elif error is None:
            error = {"code": str(job.state), "detail": f"The item was {job.state}."}
        return ItemResult(
            index=item.index, custom_id=item.custom_id, id=job.id, state=str(job.state), output=output, error=error
        )

    # -- changing ------------------------------------------------------------------------------------------------

    async def cancel(self, tenant: str, batch: str) -> BatchRecord:
        """Submit no more items and cancel the queued jobs; running jobs finish.

        Raises:
            NotFound: there is no such batch.
            Conflict: the batch is over.
        """
        record = await self._change(tenant, batch, cancel_batch)
        if record.state in (BatchState.COMPLETED, BatchState.FAILED):
            raise Conflict(f"The batch is {record.state}.")
        return record

    async def resume(self, tenant: str, batch: str) -> BatchRecord:
        """Continue a cancelled batch.

        Raises:
            NotFound: there is no such batch.
            Conflict: the batch is not cancelled, or its first results may be deleted already.
        """
        found = await self.find(tenant, batch)
        before = found.resumes
        if self._wall() >= found.created_at + found.keep_s:
            raise Conflict("The first results of the batch may not be kept any more; submit what is left anew.")
        record = await self._change(tenant, batch, lambda record: resume_batch(record, self._wall()))
        if record.resumes == before:
            raise Conflict(f"The batch is {record.state}: only one that was cancelled is resumed.")
        return record

    async def _change(self, tenant: str, batch: str, change: ChangeBatch) -> BatchRecord:
        async def attempt() -> BatchRecord:
            found = await self._store.read(tenant, batch) if BATCH_ID.fullmatch(batch) else None
            if found is None:
                raise _no_batch(batch)
            changed = change(found[0])
            if changed != found[0]:
                await self._store.update(changed, found[1])
            return changed

        return await retry_conflicts(attempt, failed=Conflict("The batch changes too fast.", retry_after=1.0))


def batch_info(record: BatchRecord) -> BatchInfo:
    return BatchInfo(
        id=record.id,
        state=str(record.state),
        function=record.ref,
        method=record.method or None,
        label=record.label,
        total=record.total,
        submitted=record.submitted,
        counts=record.counts,
        created_at=record.created_at,
        expires_at=record.expires_at,
        ended_at=record.ended_at or None,
        reason=record.reason or None,
    )


def _no_batch(batch: str) -> NotFound:
    return NotFound(f"There is no batch {batch[:100]}.")
