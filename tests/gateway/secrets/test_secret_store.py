"""Where secrets are kept: one contract, the fake and the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import Bus
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.ids import token
from pilotlight_gateway.secrets.bus_secrets import BusSecrets
from pilotlight_gateway.secrets.secret_records import DataKeyRecord, SecretRecord
from pilotlight_gateway.secrets.secret_store import MemorySecrets, SecretStore
from tests.gateway.secrets.makers import secret


@pytest.fixture(params=["memory", "bus"])
async def store(request: pytest.FixtureRequest, bus: Bus) -> AsyncIterator[SecretStore]:
    if request.param == "memory":
        yield MemorySecrets()
        return
    kept = BusSecrets(bus)
    async with kept.running():
        yield kept


@pytest.fixture
def tenant() -> str:
    return f"t{token(8)}"


def kept_as(record: SecretRecord, _: SecretRecord | None) -> SecretRecord:
    """Whatever is there."""
    return record


async def test_a_secret_is_found_by_its_tenant_and_name(store: SecretStore, tenant: str) -> None:
    """At once by whoever has set it; another tenant has none."""
    records = [secret(name, tenant=tenant) for name in ("b", "a")]
    for record in records:
        assert await store.change_secret(tenant, record.name, partial(kept_as, record)) == record

    assert store.secrets(tenant) == records[::-1]
    assert await store.secret(tenant, "a") == store.secret_nowait(tenant, "a") == records[1]
    assert store.secrets(f"{tenant}x") == []
    assert await store.secret(f"{tenant}x", "a") is None
    assert store.secret_nowait(tenant, "c") is None
    assert store.is_fresh()


async def test_a_secret_is_changed_and_goes(store: SecretStore, tenant: str) -> None:
    """By a function of what is there, which may refuse."""
    await store.change_secret(tenant, "a", lambda _: secret("a", tenant=tenant))

    def counted(present: SecretRecord | None) -> SecretRecord:
        assert present is not None
        return replace(present, number=present.number + 1)

    def refuse(_: SecretRecord | None) -> None:
        raise Conflict("no")

    assert (await store.change_secret(tenant, "a", counted)) == replace(secret("a", tenant=tenant), number=2)
    with pytest.raises(Conflict, match="no"):
        await store.change_secret(tenant, "a", refuse)
    assert await store.change_secret(tenant, "a", lambda _: None) is None
    assert await store.secret(tenant, "a") is None
    assert store.secrets(tenant) == []


async def test_the_first_data_key_stays_until_it_is_replaced_by_its_id(store: SecretStore, tenant: str) -> None:
    """Two gateways may make one at a time."""
    first = DataKeyRecord(tenant=tenant, id="dk_1", platform_key="memory:1", sealed=b"x", created_at=1.0)
    second, third = replace(first, id="dk_2"), replace(first, id="dk_3")

    assert await store.data_key(tenant) is None
    assert await store.replace_data_key(first, "") == first
    assert await store.replace_data_key(second, "") == first
    assert await store.replace_data_key(second, "dk_1") == second
    assert await store.replace_data_key(third, "dk_1") == second
    assert await store.data_key(tenant) == second
    assert second in await store.data_keys()
