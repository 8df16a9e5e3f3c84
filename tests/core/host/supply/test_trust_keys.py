"""Keys of tenants are a record that agents read: the fake and the real one do the same."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.supply.trust_keys import MemoryTrust, TrustKeys, TrustStore
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.supply.trust_records import TrustRecord
from tests.builders.supply import signing_key, trusting


@pytest.fixture(params=["bus", "memory"])
def store(request: pytest.FixtureRequest) -> TrustStore:
    if request.param == "memory":
        return MemoryTrust()
    bus: Bus = request.getfixturevalue("bus")
    return TrustKeys(bus)


async def test_a_record_is_what_the_last_change_made_of_it(store: TrustStore) -> None:
    """Each tenant's alone."""
    record = trusting(signing_key())
    assert await store.read("acme") is None

    assert await store.change("acme", lambda present: record if not present.keys else present) == record

    assert await store.read("acme") == record
    assert await store.read("rival") is None
    assert (await store.change("acme", lambda _: TrustRecord(tenant="acme"))).keys == ()


async def test_a_refused_change_changes_nothing(store: TrustStore) -> None:
    """Whoever decides may raise."""

    def refuse(_: TrustRecord) -> TrustRecord:
        raise BadInput("no")

    with pytest.raises(BadInput):
        await store.change("globex", refuse)
    assert await store.read("globex") is None
