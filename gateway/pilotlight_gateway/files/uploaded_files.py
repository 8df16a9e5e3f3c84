"""Files of all tenants: uploaded, listed, read and deleted.

The parts come first and the record last, so that a file is there whole or not at all. Blobs that no record needs, of an
upload that was broken off or a file that has expired, are found by the search for such blobs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.errors import BadInput, NotFound, QuotaExceeded
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.files import (
    FILE_BYTES,
    FILE_ID,
    KEPT_S,
    LEAST_KEPT_S,
    MOST_FILES,
    PURPOSE,
    FileRecord,
    plain_file_name,
)
from pilotlight_core.model.records.jobs import BlobRef
from pilotlight_gateway.deploys.blob_usage import BlobUsage, check_blob_bytes
from pilotlight_gateway.jobs.job_payloads import fetch_payload, store_payload
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.quotas import check_quota
from pilotlight_gateway.tenancy.registry_port import RegistryPort

PART_BYTES = 4 * 2**20
ROOM = "delete files, or an app"


@dataclass(frozen=True, kw_only=True)
class UploadedFiles:
    """The files of all tenants. Methods raise BlobsDown and BusError."""

    registry: RegistryPort
    blobs: BlobStore
    usage: BlobUsage
    wall: Callable[[], float] = time.time

    def check_room(self, tenant: str) -> None:
        """Refuse another file beyond what a tenant may have. Raises QuotaExceeded"""
        if sum(1 for _ in self.registry.iter_files(tenant)) >= MOST_FILES:
            raise QuotaExceeded(f"{tenant} has {MOST_FILES} files, which is the most: delete some.")
        allowed, used = self.registry.limits(tenant, "").tenant.record_bytes, self.registry.bytes_of(tenant)
        check_quota(tenant, "record_bytes", allowed, used, "bytes of records", ROOM)

    async def store(
        self, principal: Principal, content: AsyncIterator[bytes], describe: Callable[[], FileForm]
    ) -> FileRecord:
        """Store a file. `describe` is asked what it is once its content is there, which may come first.

        Raises:
            BadInput: it is too large, or not well described. QuotaExceeded.
        """
        tenant, made = principal.tenant, f"file-{token()}"
        self.check_room(tenant)
        parts: list[BlobRef] = []
        try:
            size = await self._store_parts(tenant, made, content, parts)
            asked, at = describe(), self.wall()
            record = FileRecord(
                tenant=tenant, id=made, name=plain_file_name(asked.name), purpose=asked.purpose, size=size,
                created_at=at, expires_at=at + asked.kept_s, by=principal.key_id, parts=tuple(parts),
            )  # fmt: skip
            self.check_room(tenant)
            await self.registry.change_file(tenant, made, lambda _: record)
        except BaseException:
            await asyncio.shield(self._drop(tenant, parts))
            raise
        return record

    async def _store_parts(self, tenant: str, made: str, content: AsyncIterator[bytes], parts: list[BlobRef]) -> int:
        allowed, used = self.registry.limits(tenant, "").tenant.blob_bytes, 0
        if allowed is not None:
            used = await self.usage.of(tenant)
        size, held = 0, bytearray()

        async def cut(length: int) -> None:
            data = bytes(held[:length])
            del held[:length]
            parts.append(await store_payload(self.blobs, tenant, made, f"part {len(parts)}", data))
            self.usage.add(tenant, len(data))

        async for piece in content:
            size += len(piece)
            if size > FILE_BYTES:
                raise BadInput(f"file: larger than {FILE_BYTES} bytes.", code="too_large", field="file")
            if allowed is not None:
                check_blob_bytes(tenant, allowed, used, [size])
            held += piece
            while len(held) >= PART_BYTES:
                await cut(PART_BYTES)
        if held:
            await cut(len(held))
        return size

    async def _drop(self, tenant: str, parts: list[BlobRef]) -> None:
        for part in parts:
            await self.blobs.delete(tenant, part.sha256)

    async def find(self, tenant: str, file_id: str) -> FileRecord:
        """Raises NotFound for a file that the tenant does not have."""
        record = await self.registry.file(tenant, file_id) if FILE_ID.fullmatch(file_id) else None
        if record is None or not record.is_kept(self.wall()):
            raise no_file(file_id)
        return record

    def listed(self, tenant: str) -> list[FileRecord]:
        """A tenant's, the newest first."""
        at = self.wall()
        found = [record for record in self.registry.iter_files(tenant) if record.is_kept(at)]
        return sorted(found, key=lambda record: (-record.created_at, record.id))

    async def content(self, record: FileRecord) -> AsyncIterator[bytes]:
        """The content, part by part. Raises BlobMissing."""
        for part in record.parts:
            yield await fetch_payload(self.blobs, record.tenant, part)

    async def delete(self, tenant: str, file_id: str) -> FileRecord:
        """Delete a file with its content. Batches that it was the input of have read it. Raises NotFound."""
        record = await self.find(tenant, file_id)
        await self.registry.change_file(tenant, file_id, lambda _: None)
        await self._drop(tenant, list(record.parts))
        return record


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """What is said of a file that is uploaded."""

    name: str
    purpose: str
    kept_s: float = KEPT_S


def check_purpose(purpose: str) -> str:
    """Raises BadInput."""
    if not PURPOSE.fullmatch(purpose):
        raise BadInput('purpose: expected what the file is for, such as "batch".', code="bad_request", field="purpose")
    return purpose


def check_kept(seconds: str) -> float:
    """For how many seconds a file is to be kept. Raises BadInput."""
    if not (seconds.isascii() and seconds.isdigit() and LEAST_KEPT_S <= float(seconds[:12]) <= KEPT_S):
        raise BadInput(
            f"expires_after[seconds]: expected {LEAST_KEPT_S:g} to {KEPT_S:g}.",
            code="bad_request", field="expires_after[seconds]",
        )  # fmt: skip
    return float(seconds)


def no_file(file_id: str) -> NotFound:
    """The error for a file that a tenant does not have."""
    return NotFound(f"There is no file {file_id[:100]!r}.", field="file_id")
