"""One contract for stored data keys: over the bus and in memory."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import BLOB_KEY_BUCKET
from pilotlight_gateway.secrets.bus_data_keys import BusDataKeys
from pilotlight_gateway.secrets.data_key_store import DataKeyErased, DataKeyStore, MemoryDataKeys
from pilotlight_gateway.secrets.secret_records import DataKeyRecord
from tests.gateway.secrets.makers import AT


@pytest.fixture(params=["bus", "memory"])
def store(request: pytest.FixtureRequest) -> DataKeyStore:
    if request.param == "memory":
        return MemoryDataKeys()
    bus: Bus = request.getfixturevalue("bus")
    return BusDataKeys(bus, BLOB_KEY_BUCKET)


async def test_the_first_key_stays_until_it_is_replaced_by_name(store: DataKeyStore) -> None:
    """Of two that make one, both get the first."""
    tenant = f"t{token(8)}"
    first = DataKeyRecord(tenant=tenant, id="dk_1", platform_key="memory:1", sealed=b"1", created_at=AT)
    second = replace(first, id="dk_2")

    assert await store.data_key(tenant) is None
    assert await store.replace_data_key(first, "") == first
    assert await store.replace_data_key(second, "") == first
    assert await store.replace_data_key(second, "dk_1") == second
    assert second in await store.data_keys()


async def test_an_erased_key_is_gone(store: DataKeyStore) -> None:
    """And no other one can be made, nor the same be stored again by whom has read it before."""
    tenant = f"t{token(8)}"
    record = DataKeyRecord(tenant=tenant, id="dk_1", platform_key="memory:1", sealed=b"1", created_at=AT)
    await store.replace_data_key(record, "")

    assert await store.erase_data_key(tenant)
    assert not await store.erase_data_key(tenant)
    left = await store.data_key(tenant)
    assert left is not None
    assert left.is_destroyed
    assert tenant not in {one.tenant for one in await store.data_keys()}
    for former in ("", "dk_1"):
        with pytest.raises(DataKeyErased, match=f"The tenant {tenant} was erased"):
            await store.replace_data_key(record, former)


async def test_a_tenant_without_a_key_is_erased_too(store: DataKeyStore) -> None:
    """So that a process that hears of it late makes none; and a key that is gone meanwhile is not stored again."""
    tenant = f"t{token(8)}"
    record = DataKeyRecord(tenant=tenant, id="dk_1", platform_key="memory:1", sealed=b"1", created_at=AT)
    with pytest.raises(DataKeyErased):
        await store.replace_data_key(record, "dk_1")

    assert not await store.erase_data_key(tenant)
    with pytest.raises(DataKeyErased):
        await store.replace_data_key(record, "")


async def test_which_key_seals_them_is_claimed_by_name(store: DataKeyStore) -> None:
    """In the place of the one that is expected there, or not at all."""
    present = await store.platform_key()

    assert await store.claim_platform_key("memory:9", "another") == present
    assert await store.claim_platform_key("memory:9", present) == "memory:9"
    assert await store.platform_key() == "memory:9"
