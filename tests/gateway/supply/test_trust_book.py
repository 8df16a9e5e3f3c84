"""Keys on record overlap, and stay revoked."""

from __future__ import annotations

import pytest

from pilotlight_core.host.supply.trust_keys import MemoryTrust
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.trust_records import MOST_TRUSTED, TrustRecord
from pilotlight_gateway.supply.trust_book import add_trusted_key, revoke_trusted_key
from tests.builders.supply import AT, DAY_S, signing_key, trusting

OLD, NEW = signing_key(), signing_key()


async def add(store: MemoryTrust, name: str, pem: str, not_after: float = 0.0) -> None:
    await add_trusted_key(store, "acme", name, pem, KeyTerms(not_after=not_after), by="key1", at=AT)


def state(store: MemoryTrust, at: float = AT) -> dict[str, str]:
    return {each.name: each.terms.fault(at) for each in store.records["acme"].keys}


async def test_the_next_key_counts_beside_the_present_one_until_that_expires() -> None:
    """The same key again has other terms."""
    store = MemoryTrust()
    await add(store, "old", OLD.pem)
    await add(store, "new", NEW.pem)
    await add(store, "old", OLD.pem, not_after=AT + DAY_S)

    assert state(store) == {"old": "", "new": ""}
    assert state(store, AT + 2 * DAY_S) == {"old": "has expired on 2026-09-22 14:13 UTC", "new": ""}


async def test_a_revoked_key_cannot_be_brought_back() -> None:
    """Neither under its name, nor under another."""
    store = MemoryTrust()
    await add(store, "old", OLD.pem)
    first = await revoke_trusted_key(store, "acme", "old", "stolen", at=AT)
    again = await revoke_trusted_key(store, "acme", "old", "else", at=AT + 1)

    assert again == first
    with pytest.raises(Conflict, match=r"the key old was revoked on .*: stolen"):
        await add(store, "old", OLD.pem)
    with pytest.raises(Conflict, match="the key is there as old"):
        await add(store, "fresh", OLD.pem)
    with pytest.raises(Conflict, match="the name old is of the key"):
        await add(store, "old", NEW.pem)
    with pytest.raises(NotFound, match="There is no key other on record; there is old"):
        await revoke_trusted_key(store, "acme", "other", "", at=AT)


async def test_what_is_no_key_is_refused_and_so_is_one_too_many() -> None:
    """A record has an end."""
    full = trusting(*[signing_key()] * MOST_TRUSTED)
    store = MemoryTrust({"acme": TrustRecord(tenant="acme", keys=full.keys)})
    with pytest.raises(BadInput, match="pem: expected the PEM of a public key of the curve P-256"):
        await add(store, "x", "nonsense")
    with pytest.raises(Conflict, match="32 keys at most"):
        await add(store, "more", NEW.pem)
    with pytest.raises(BadInput, match="is not a name"):
        await add(store, "../x", NEW.pem)
