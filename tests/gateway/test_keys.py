"""Keys are random, recognisable when mistyped, and nothing of the secret is kept."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.api import KeyRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_gateway.auth import Principal
from pilotlight_gateway.keys import ALPHABET, KEYS_PER_TENANT, create_key, list_keys, new_key, parse_key, revoke_key
from pilotlight_gateway.registry_port import MemoryRegistry

ADMIN = Principal(tenant="acme", key_id="k", scopes=frozenset({"admin"}))
POSITION = st.integers(0, 52)


@given(POSITION, st.sampled_from(ALPHABET + "-_ é"))
def test_a_key_with_one_wrong_character_is_recognised_as_none(position: int, character: str) -> None:
    """Changing any character makes it no key (the checksum sees every single change)."""
    text = str(new_key())
    changed = text[:position] + character + text[position + 1 :]

    assert (parse_key(changed) is None) == (changed != text)


@given(st.text(max_size=80))
def test_any_text_is_a_key_or_none(text: str) -> None:
    """Parsing never raises."""
    assert parse_key(text) is None or text.startswith("pl_live_")


def test_a_key_is_read_back_as_it_was_made() -> None:
    """The text of a key has all of it, in the published format."""
    key = new_key()

    assert parse_key(str(key)) == key
    assert len(str(key)) == len("pl_live_") + 8 + 1 + 30 + 6


async def test_only_the_digest_of_the_secret_is_kept() -> None:
    """A created key opens its record, and the record does not hold it."""
    registry = MemoryRegistry()

    made = await create_key(registry, "acme", KeyRequest(scopes=("read", "invoke"), expires_in_s=60.0), at=1000.0)

    record = registry.key_records[made.id]
    parsed = parse_key(made.key)
    assert parsed is not None
    assert parsed.opens(record)
    assert not new_key().opens(record)
    assert parsed.secret not in repr(record)
    assert (record.scopes, record.expires_at) == (("invoke", "read"), 1060.0)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (KeyRequest(scopes=("root",)), "scopes"),
        (KeyRequest(scopes=()), "scopes"),
        (KeyRequest(expires_in_s=0.0), "expires_in_s"),
        (KeyRequest(expires_in_s=float("nan")), "expires_in_s"),
        (KeyRequest(expires_in_s=1e12), "expires_in_s"),
        (KeyRequest(label="x" * 101), "label"),
        (KeyRequest(label="a\nb"), "label"),
    ],
)
async def test_a_key_that_may_not_be_made_is_refused_by_field(request_: KeyRequest, field: str) -> None:
    """Bad requests name the field."""
    with pytest.raises(BadInput) as caught:
        await create_key(MemoryRegistry(), "acme", request_, at=0.0)

    assert caught.value.more["field"] == field


async def test_a_tenant_has_a_bounded_number_of_keys() -> None:
    """Beyond the limit a key must be revoked first."""
    registry = MemoryRegistry()
    first = await create_key(registry, "acme", KeyRequest(), at=0.0)
    record = registry.key_records[first.id]
    for number in range(KEYS_PER_TENANT - 1):
        registry.key_records[str(number)] = msgspec.structs.replace(record, id=str(number))
    with pytest.raises(Conflict):
        await create_key(registry, "acme", KeyRequest(), at=0.0)

    await revoke_key(registry, ADMIN, first.id)
    await create_key(registry, "acme", KeyRequest(), at=0.0)


async def test_keys_of_others_are_neither_seen_nor_revoked() -> None:
    """Listing and revoking stay inside the tenant; what is another's does not exist."""
    registry = MemoryRegistry()
    foreign = await create_key(registry, "other", KeyRequest(), at=0.0)
    own = await create_key(registry, "acme", KeyRequest(label="ci"), at=1.0)

    assert [key.id for key in list_keys(registry, "acme")] == [own.id]
    for unknown in (foreign.id, "nokey000", "../../..", ""):
        with pytest.raises(NotFound):
            await revoke_key(registry, ADMIN, unknown)
    assert not registry.key_records[foreign.id].revoked
