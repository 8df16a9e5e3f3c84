"""Records of a quota, on a real bus and in memory: one per tenant, written by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotlight_core.bus import Bus, KeyConflict, Kv, StoreRefused
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import IDEMPOTENCY_BUCKET
from pilotlight_gateway.storage_quota.bus_quota import BusQuotaRecords
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from pilotlight_gateway.storage_quota.quota_port import QuotaRecords
from pilotlight_gateway.storage_quota.quota_shares import QuotaUsage, quota_key
from tests.waiting import until_found

TTL = 3600.0


@pytest.fixture(params=["bus", "memory"])
def records_of(request: pytest.FixtureRequest, bus: Bus) -> Callable[[Bus], QuotaRecords]:
    """The records as a gateway on a bus has them."""
    memory = MemoryQuotaRecords()

    def of(connection: Bus) -> QuotaRecords:
        return memory if request.param == "memory" else on(connection)

    return of


def on(bus: Bus) -> BusQuotaRecords:
    """The records in the bucket of keys."""
    return BusQuotaRecords(bus.kv(IDEMPOTENCY_BUCKET), stored="idempotency keys")


async def test_a_record_is_one_for_all_gateways(
    records_of: Callable[[Bus], QuotaRecords],
    bus: Bus,
    other: Bus,
) -> None:
    """Another gateway reads what one wrote, and writes over the revision that it read, not over another."""
    one, two, key = records_of(bus), records_of(other), quota_key(token())
    assert await one.read_share(key) is None
    await one.write_share(key, QuotaUsage({1: 5}), 0, TTL)
    found = await two.read_share(key)
    assert found is not None
    assert found[0] == QuotaUsage({1: 5})
    with pytest.raises(KeyConflict):
        await two.write_share(key, QuotaUsage({1: 6}), 0, TTL)
    await two.write_share(key, QuotaUsage({1: 6}), found[1], TTL)

    read = await one.read_share(key)
    assert read is not None
    assert read[0] == QuotaUsage({1: 6})


async def test_a_record_expires(bus: Bus) -> None:
    """With the last that is counted in it."""
    records, key = on(bus), quota_key(token())
    await records.write_share(key, QuotaUsage({1: 5}), 0, ttl=1.0)

    async def expired() -> bool:
        return await records.read_share(key) is None

    assert await until_found(expired)


async def test_a_deleted_record_counts_nothing_and_is_written_over(bus: Bus) -> None:
    """Its key keeps a revision."""
    records, key = on(bus), quota_key(token())
    await records.write_share(key, QuotaUsage({1: 5}), 0, TTL)
    await bus.kv(IDEMPOTENCY_BUCKET).delete(key)
    found = await records.read_share(key)
    assert found is not None
    assert found[0] == QuotaUsage()
    await records.write_share(key, QuotaUsage({2: 1}), found[1], TTL)

    again = await records.read_share(key)
    assert again is not None
    assert again[0] == QuotaUsage({2: 1})


async def test_a_full_bucket_is_named(bus: Bus) -> None:
    """What is refused says what there is no room for, and when to come again."""

    class FullKv(Kv):
        async def update(self, *_: object, **__: object) -> int:
            raise StoreRefused("maximum bytes exceeded")

    records = BusQuotaRecords(FullKv(bus.jetstream, IDEMPOTENCY_BUCKET), stored="jobs")
    with pytest.raises(Unavailable, match="room for jobs is used up") as refused:
        await records.write_share(quota_key("acme"), QuotaUsage({1: 5}), 0, TTL)

    assert (refused.value.wire_code, refused.value.retry_after) == ("overloaded", 60.0)
