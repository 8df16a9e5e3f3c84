"""Batches: many inputs for one function, each run as a job of its own, at the lowest class.

    (stored) ──▶ RUNNING ──────────────▶ COMPLETED
                  │   ▲                      every item has ended
        cancelled │   │ resumed
                  ▼   │
             CANCELLING ──▶ CANCELLED
                              no item waits or runs any more

The record has the batch's parameters and progress; its inputs are blobs, in chunks, and its results are those of its
jobs. An item's job id follows from the batch and the item's index, so after a crash of the process that drives the
batch its successor finds the submitted jobs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import structs

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.records.jobs import BlobRef, keyed_job_id

ITEMS_AT_MOST = 50_000
CUSTOM_ID_LENGTH = 128
ID_PATTERN = "^batch_[0-9a-z]{20}$"
LONGEST_LIFE_S = 5 * 86_400.0
"""The time in which its items must start; results are kept for longer."""
SHORTEST_LIFE_S = 60.0
DEFAULT_LIFE_S = 86_400.0


class BatchState(StrEnum):
    RUNNING = "running"  # its items are submitted, as many at a time as fit
    COMPLETED = "completed"  # every item has ended
    CANCELLING = "cancelling"  # nothing is submitted, waiting items are cancelled, running ones end
    CANCELLED = "cancelled"  # it can be resumed
    FAILED = "failed"  # its inputs are gone

    @property
    def over(self) -> bool:
        return self in (BatchState.COMPLETED, BatchState.CANCELLED, BatchState.FAILED)


class ItemCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Ended items by result."""

    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    expired: int = 0

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled + self.expired

    def plus(self, state: str) -> ItemCounts:
        return structs.replace(self, **{state: getattr(self, state) + 1})

    def add(self, other: ItemCounts) -> ItemCounts:
        return ItemCounts(
            succeeded=self.succeeded + other.succeeded,
            failed=self.failed + other.failed,
            cancelled=self.cancelled + other.cancelled,
            expired=self.expired + other.expired,
        )


class BatchChunk(msgspec.Struct, frozen=True):
    blob: BlobRef
    first: int
    count: int


class BatchItem(msgspec.Struct, frozen=True, array_like=True):
    """One input: a line of the request."""

    index: int
    """From 0, of those that are not empty."""
    custom_id: str
    """The caller's name for it, or its position from 1."""
    input: bytes


class BatchForm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A batch of requests, as OpenAI's clients have submitted it."""

    endpoint: str
    """The address that its requests are for."""
    input_file_id: str
    model: str
    completion_window: str = "24h"
    metadata: dict[str, str] = {}


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A batch. Bucket BATCHES, key `{tenant}.{id}`. Times in unix seconds."""

    id: str
    tenant: str
    function: str
    """`tenant:app.function` of its owner."""
    version: str
    ref: str
    method: str = ""
    label: str = ""
    fingerprint: bytes = b""
    created_at: float
    life_s: float
    """The time for its items to start, from its creation or resumption."""
    expires_at: float
    keep_s: float
    """How long its jobs are kept after their end, and the batch after its own."""
    retries: int = 0
    idempotent: bool = False
    timeout: float = 300.0
    total: int
    chunks: BlobRef
    openai: BatchForm | None = None
    """What OpenAI's clients are told of it; None: it is of inputs, not of requests."""

    state: BatchState = BatchState.RUNNING
    reason: str = ""
    resumes: int = 0
    settled_chunks: int = 0
    """Number of chunks, from the first one on, whose items have all ended."""
    settled: ItemCounts = ItemCounts()
    """The items of those."""
    counts: ItemCounts = ItemCounts()
    """All ended items when the record was last written."""
    submitted: int = 0
    ended_at: float = 0.0
    traceparent: str = ""
    """Of the request that stored it, to which the traces of its items' runs are linked."""

    @property
    def key(self) -> str:
        return f"{self.tenant}.{self.id}"


def job_of(region: str, tenant: str, batch: str, index: int) -> str:
    return keyed_job_id(region, tenant, "batch", f"{batch}:{index}")


def cancel_batch(record: BatchRecord) -> BatchRecord:
    return structs.replace(record, state=BatchState.CANCELLING) if record.state is BatchState.RUNNING else record


def resume_batch(record: BatchRecord, at: float) -> BatchRecord:
    """The batch running again; its cancelled items run again too."""
    if record.state not in (BatchState.CANCELLED, BatchState.CANCELLING):
        return record
    return structs.replace(
        record,
        state=BatchState.RUNNING,
        resumes=record.resumes + 1,
        expires_at=at + record.life_s,
        settled_chunks=0,
        settled=ItemCounts(),
        counts=ItemCounts(),
        submitted=0,
        ended_at=0.0,
    )


def finished(record: BatchRecord, at: float) -> BatchRecord:
    """The batch of which no item waits or runs any more."""
    state = BatchState.CANCELLED if record.state is BatchState.CANCELLING else BatchState.COMPLETED
    return structs.replace(record, state=state, ended_at=at)


def broken(record: BatchRecord, at: float, reason: str) -> BatchRecord:
    return structs.replace(record, state=BatchState.FAILED, ended_at=at, reason=reason)


class BatchInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as the API shows it."""

    id: str
    state: str
    function: str
    """`app.function@v7`."""
    method: str | None
    label: str
    total: int
    submitted: int
    """Items that wait, run, or have ended."""
    counts: ItemCounts
    """Items that have ended."""
    created_at: float
    expires_at: float
    ended_at: float | None
    reason: str | None


class ItemResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    index: int
    custom_id: str
    id: str
    """Its job's."""
    state: str
    output: Any = None
    error: dict[str, str] | None = None


class ItemError(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a line."""

    line: int
    """From 1."""
    field: str
    detail: str
    custom_id: str | None = None
    """If it could be read."""


class BatchQuery(Request, frozen=True, kw_only=True):
    """The parameters of `POST /v1/batches`."""

    function: str
    method: str | None = None
    label: str = ""
    expires_in_s: float = DEFAULT_LIFE_S
    traceparent: str = ""
    """Of the request's header."""
