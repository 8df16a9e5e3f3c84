"""Blobs of jobs that nobody will ask for: found in the store itself, whatever the one who should have deleted it saw.

The sweeper deletes the blobs of jobs that are forgotten while it looks on. What was forgotten while no duty ran, the
result of a run that lost its job, and the input of a submission that was not confirmed are found here: each blob of a
job says in its head whose it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.host.blobs.port import Listed
from pilotlight_core.model.jobs import BlobRef, JobState, job_key
from pilotlight_gateway.jobs import payloads

YOUNG_S = 3600.0
"""What is kept for less may be of a job whose record is just being written."""

log = structlog.get_logger(__name__)

Read = Callable[[str], Awaitable[bytes | None]]
"""The record under a key as it stands; None: there is none."""


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


async def delete_orphans(blobs: BlobStore, read: Read, at: float) -> int:
    """Delete them, as of the unix second `at`; how many there were. Raises as the bus and the blob store do."""
    deleted = 0
    listed: Any = blobs.listed()
    async with aclosing(listed):
        async for one in listed:
            if one.size > payloads.INPUT_INLINE and at - one.at >= YOUNG_S and await _is_orphan(blobs, read, one):
                await blobs.delete(one.tenant, one.sha256)
                deleted += 1
    if deleted:
        log.info("blobs of forgotten jobs were deleted", blobs=deleted)
    return deleted


async def _is_orphan(blobs: BlobStore, read: Read, one: Listed) -> bool:
    pieces: Any = blobs.get(one.tenant, one.sha256)
    async with aclosing(pieces):
        try:
            job = payloads.job_of(await anext(pieces, b""))
        except BlobMissing:
            return False
    if job is None:
        return False
    record = await read(job_key(one.tenant, job))
    try:
        return record is None or not _decoder.decode(record).needs(one.sha256)
    except msgspec.DecodeError:
        return False  # whoever can read the record may need it
