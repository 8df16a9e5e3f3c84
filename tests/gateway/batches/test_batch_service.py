"""What submitting a batch leaves behind when it is refused, repeated or not confirmed, and what a tenant may store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
import pytest

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.errors import BadInput, Conflict, TooMuch, Unavailable
from pilotlight_core.model.records.batches import BatchQuery, BatchRecord, BatchState
from pilotlight_gateway.batches.batch_manifest import read_chunks
from pilotlight_gateway.batches.batch_port import MemoryBatches
from pilotlight_gateway.batches.batch_service import BATCHES_PER_TENANT, BatchService
from pilotlight_gateway.jobs.job_service import KEPT_S, RECORD_BYTES, JobService
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from tests.gateway.batches.makers import batch, version


@dataclass(kw_only=True)
class Anew(MemoryBatches):
    """Answers with what it reads, as a bus does whose confirmation was lost; or it has no room."""

    full: bool = False

    async def create(self, record: BatchRecord) -> BatchRecord:
        if self.full:
            raise Unavailable("no room", code="overloaded")
        found = await super().create(record)
        return msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=BatchRecord)


@dataclass(kw_only=True)
class Site:
    """Batches over stores in memory."""

    store: Anew = field(default_factory=Anew)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    share: int = 10**9

    def __post_init__(self) -> None:
        quota = JobStorageQuota(MemoryQuotaRecords(), limit=self.share, life=KEPT_S, wall=time.time)
        self.desk = BatchService(self.store, JobService(quota=quota), blobs=self.blobs)

    async def submit(self, *names: str, key: str = "") -> BatchRecord:
        async def body() -> AsyncIterator[bytes]:
            yield b"\n".join(msgspec.json.encode({"input": {"name": name}}) for name in names)

        query = BatchQuery(function="shop.hello")
        return await self.desk.submit("acme", version(), query, body(), key)


async def test_a_batch_whose_confirmation_was_lost_keeps_its_inputs() -> None:
    """What stands there is it, though it was read anew."""
    site = Site()
    record = await site.submit("Ada", "Bob")

    (chunk,) = await read_chunks(site.blobs, "acme", record.chunks)
    assert chunk.count == 2
    assert chunk.blob.sha256 in {digest for _, digest in site.blobs.kept}


async def test_what_is_repeated_or_refused_leaves_nothing() -> None:
    """Neither inputs nor room: not under a key that is used already, and not where nothing can be stored."""
    site = Site(share=4 * RECORD_BYTES)
    first = await site.submit("Ada", "Bob", key="night")
    kept = set(site.blobs.kept)

    assert await site.submit("Ada", "Bob", key="night") == first
    with pytest.raises(BadInput, match="stands for another batch"):
        await site.submit("Ada", "Eve", key="night")
    site.store.full = True
    with pytest.raises(Unavailable):
        await site.submit("Joe", key="other")
    assert set(site.blobs.kept) == kept


async def test_items_count_as_what_their_tenant_stores() -> None:
    """Before they are jobs: a batch that would be too much is refused whole."""
    site = Site(share=3 * RECORD_BYTES)
    await site.submit("Ada", "Bob")
    with pytest.raises(TooMuch):
        await site.submit("Eve", "Joe")
    assert len(site.store.kept) == 1


async def test_a_key_makes_no_more_batches_than_there_may_be() -> None:
    """It finds the one that it stands for, however many there are."""
    site = Site()
    first = await site.submit("Ada", key="first")
    for number in range(BATCHES_PER_TENANT - 1):
        await site.store.create(batch(id=f"batch_{number:020}"))

    assert await site.submit("Ada", key="first") == first
    with pytest.raises(TooMuch, match="There may be 100 batches"):
        await site.submit("Ada", key="second")


async def test_what_may_be_forgotten_is_not_resumed() -> None:
    """Its items that are done would be done again."""
    site = Site()
    old = batch(created_at=0.0, keep_s=600.0, state=BatchState.CANCELLED)
    await site.store.create(old)
    with pytest.raises(Conflict, match="may not be kept any more"):
        await site.desk.resume("acme", old.id)
