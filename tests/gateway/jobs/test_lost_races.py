"""Who finds a record changed by somebody else, however often it is tried, is told so, each in its own words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pilotlight_core.bus import BusError, WrongRevision
from pilotlight_core.model.errors import Conflict, PilotlightError
from pilotlight_core.model.records.batches import BatchRecord
from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_gateway.batches.batch_port import MemoryBatches
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.idempotency.key_record import FirstCall
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.idempotency.memory_key_records import MemoryKeyRecords
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from pilotlight_gateway.storage_quota.quota_lease import StorageQuota
from pilotlight_gateway.storage_quota.quota_shares import QuotaUsage
from tests.builders.jobs import JOB, job
from tests.gateway.batches.makers import batch
from tests.gateway.idempotency.asking import Work, ask, give


@dataclass(kw_only=True)
class Losses:
    """How many writes are lost from now on, and how many were tried."""

    left: int
    tried: int = 0

    def lose(self) -> None:
        self.tried += 1
        if self.left:
            self.left -= 1
            raise WrongRevision("somebody else was first")


@dataclass(kw_only=True)
class LostJobs(MemoryJobs):
    losses: Losses

    async def update(self, job: JobRecord, revision: int) -> int:
        self.losses.lose()
        return await super().update(job, revision)


@dataclass(kw_only=True)
class LostBatches(MemoryBatches):
    losses: Losses

    async def update(self, record: BatchRecord, revision: int) -> int:
        self.losses.lose()
        return await super().update(record, revision)


@dataclass(kw_only=True)
class LostKeys(MemoryKeyRecords):
    losses: Losses

    async def claim(self, place: str, first: FirstCall, revision: int, ttl: float) -> int:
        self.losses.lose()
        return await super().claim(place, first, revision, ttl)


@dataclass(kw_only=True)
class LostQuotas(MemoryQuotaRecords):
    losses: Losses

    async def write_share(self, key: str, taken: QuotaUsage, revision: int, ttl: float) -> None:
        self.losses.lose()
        await super().write_share(key, taken, revision, ttl)


async def test_a_few_changes_in_between_are_overcome() -> None:
    """Each is seen, and the job is cancelled in the end."""
    store = LostJobs(losses=Losses(left=3))
    await store.create(job())

    cancelled = await JobService(store).cancel("acme", JOB)

    assert cancelled is not None
    assert cancelled[0].state is JobState.CANCELLED
    assert store.losses.tried == 4


async def test_a_job_that_changes_too_fast_is_not_cancelled() -> None:
    """Whoever asked may ask again."""
    store = LostJobs(losses=Losses(left=1_000))
    await store.create(job())
    with pytest.raises(Conflict, match="The job changes too fast") as failed:
        await JobService(store).cancel("acme", JOB)
    assert failed.value.retry_after == 1.0


async def test_a_batch_that_changes_too_fast_is_not_cancelled() -> None:
    """As a job."""
    store = LostBatches(losses=Losses(left=1_000))
    record = batch()
    await store.create(record)
    with pytest.raises(Conflict, match="The batch changes too fast") as failed:
        await BatchService(store, JobService()).cancel(record.tenant, record.id)
    assert failed.value.retry_after == 1.0


async def test_a_key_that_is_always_somebody_elses_is_in_use() -> None:
    """It is claimed after a few losses; for ever is not tried, and nothing runs."""
    records, work = LostKeys(losses=Losses(left=3)), Work()
    assert not (await give(Idempotency(records), ask(), work)).replayed
    assert records.losses.tried == 4

    records = LostKeys(losses=Losses(left=1_000))
    with pytest.raises(PilotlightError) as refused:
        await give(Idempotency(records), ask(), work)
    assert (refused.value.wire_code, refused.value.retry_after) == ("idempotency_key_in_use", 1.0)
    assert work.begun == 1


async def test_room_that_others_always_take_first_is_not_known() -> None:
    """After a few losses it is taken; what is stored anyway is owed, and paid with the next."""
    records = LostQuotas(losses=Losses(left=3))
    room = StorageQuota(records, limit=10**6, life=86_400.0, wall=lambda: 1e9)
    await room.take("acme", 400)
    assert records.losses.tried == 4

    records.losses.left = 1_000
    with pytest.raises(BusError, match="were first"):
        await room.take("acme", 500_000)
    _, fits = await room.count("acme", 500_000)
    assert not fits

    records.losses.left = 0
    await room.take("acme", 300_000)
    assert records._kept[next(iter(records._kept))][0].slots.popitem()[1] > 800_000
