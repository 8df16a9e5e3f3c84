"""Where batches are kept: one contract, the fake and the real one."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.bus import Bus, KvEntry, StoreRefused, WrongRevision
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.batches import BatchRecord, BatchState
from pilotlight_core.model.subjects import BATCH_BUCKET
from pilotlight_gateway.batches.batch_port import BatchStore, MemoryBatches
from pilotlight_gateway.batches.bus_batches import BusBatches, read_batch
from tests.gateway.batches.makers import batch


@pytest.fixture(params=["memory", "bus"])
def store(request: pytest.FixtureRequest, bus: Bus) -> BatchStore:
    return MemoryBatches() if request.param == "memory" else BusBatches(bus)


@pytest.fixture
def tenant() -> str:
    return f"t{token(8)}"


async def test_a_batch_is_made_once(store: BatchStore, tenant: str) -> None:
    """Whoever makes it a second time gets the first."""
    record = batch(tenant)
    assert await store.create(record) == record
    assert await store.create(msgspec.structs.replace(record, label="other")) == record

    assert [one.id for one in await store.all(tenant)] == [record.id]
    assert await store.all(f"{tenant}x") == []


async def test_a_change_meets_the_revision_that_was_read(store: BatchStore, tenant: str) -> None:
    """Another one's change stands."""
    record = await store.create(batch(tenant))
    found = await store.read(tenant, record.id)
    assert found is not None
    cancelling = msgspec.structs.replace(record, state=BatchState.CANCELLING)
    revision = await store.update(cancelling, found[1])
    with pytest.raises(WrongRevision):
        await store.update(record, found[1])
    await store.update(msgspec.structs.replace(cancelling, state=BatchState.CANCELLED), revision)

    now = await store.read(tenant, record.id)
    assert now is not None
    assert now[0].state is BatchState.CANCELLED
    assert await store.read(tenant, "batch_00000000000000000009") is None


async def test_what_cannot_be_read_holds_nobody_up(bus: Bus, tenant: str) -> None:
    """A record of a version to come is left out of the list."""
    store = BusBatches(bus)
    record = await store.create(batch(tenant))
    await bus.kv(BATCH_BUCKET).put(f"{tenant}.batch_odd", b"\xc1")

    assert [one.id for one in await store.all(tenant)] == [record.id]
    assert read_batch("x", KvEntry(b"\xc1", 1)) is None


async def test_a_full_bucket_refuses_a_new_batch(bus: Bus, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says when to come again."""
    store = BusBatches(bus)

    async def refuse(*_: object, **__: object) -> int:
        raise StoreRefused("maximum bytes exceeded")

    monkeypatch.setattr(store._kv, "update", refuse)
    with pytest.raises(Unavailable, match="room for batches") as refused:
        await store.create(batch(tenant))

    assert (refused.value.wire_code, refused.value.retry_after) == ("overloaded", 60.0)


def test_records_are_read_as_they_were_written() -> None:
    """Whatever is in them."""
    record: BatchRecord = batch("acme", label="x" * 100)
    assert read_batch(record.key, KvEntry(msgspec.msgpack.encode(record), 3)) == record
