"""Keys are random, recognisable when mistyped, and nothing of the secret is kept."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import RotateRequest
from pilotlight_core.model.errors import BadInput, Conflict, Forbidden, NotFound, QuotaExceeded
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.tenancy.api_keys import (
    ALPHABET,
    DEAD_KEYS_KEPT,
    KEYS_PER_TENANT,
    create_key,
    is_alive,
    list_keys,
    new_key,
    parse_key,
    revoke_key,
    rotate_key,
)
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry

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


async def test_a_tenant_has_a_bounded_number_of_keys() -> None:
    """Beyond the limit a key must be revoked first."""
    registry = MemoryRegistry()
    registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier="enterprise")
    first = await create_key(registry, "acme", KeyRequest(), at=0.0)
    record = registry.key_records[first.id]
    for number in range(KEYS_PER_TENANT - 1):
        registry.key_records[str(number)] = msgspec.structs.replace(record, id=str(number))
    with pytest.raises(QuotaExceeded, match="may have 1000 keys"):
        await create_key(registry, "acme", KeyRequest(), at=0.0)

    await revoke_key(registry, "acme", first.id, at=0.0)
    await create_key(registry, "acme", KeyRequest(), at=0.0)


async def test_a_tier_says_how_many_keys() -> None:
    """A free tenant has 20."""
    registry = MemoryRegistry()
    registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier="free")
    for _ in range(20):
        await create_key(registry, "acme", KeyRequest(), at=0.0)

    with pytest.raises(QuotaExceeded) as refused:
        await create_key(registry, "acme", KeyRequest(), at=0.0)

    assert refused.value.more["limits"][0].limit == "keys"


async def test_keys_of_others_are_neither_seen_nor_revoked() -> None:
    """Listing and revoking stay inside the tenant; what is another's does not exist."""
    registry = MemoryRegistry()
    foreign = await create_key(registry, "other", KeyRequest(), at=0.0)
    own = await create_key(registry, "acme", KeyRequest(label="ci"), at=1.0)

    assert [key.id for key in list_keys(registry, "acme")] == [own.id]
    for unknown in (foreign.id, "nokey000", "../../..", ""):
        with pytest.raises(NotFound):
            await revoke_key(registry, "acme", unknown, at=0.0)
    assert not registry.key_records[foreign.id].revoked


async def test_a_rotated_key_is_valid_beside_its_successor_for_a_while() -> None:
    """Both open until the overlap has passed; the new one has the old one's scopes, label and length of life."""
    registry = MemoryRegistry()
    old = await create_key(registry, "acme", KeyRequest(scopes=("read",), label="ci", expires_in_s=1_000.0), at=0.0)

    new = await rotate_key(registry, "acme", old.id, RotateRequest(overlap_s=60.0), at=100.0)

    before, after = registry.key_records[old.id], registry.key_records[new.id]
    assert (after.scopes, after.label, after.expires_at) == (("read",), "ci", 1_100.0)
    assert (new.replaces, new.replaced_until, before.replaced_by) == (old.id, 160.0, new.id)
    assert [is_alive(before, at) for at in (100.0, 159.9, 160.0)] == [True, True, False]
    assert is_alive(after, 160.0)


async def test_an_overlap_never_lengthens_a_life() -> None:
    """A key that would have ended before keeps its end; without overlap it ends at once."""
    registry = MemoryRegistry()
    ending = await create_key(registry, "acme", KeyRequest(expires_in_s=10.0), at=0.0)
    endless = await create_key(registry, "acme", KeyRequest(), at=0.0)

    first = await rotate_key(registry, "acme", ending.id, RotateRequest(overlap_s=60.0), at=5.0)
    second = await rotate_key(registry, "acme", endless.id, RotateRequest(overlap_s=0.0, expires_in_s=7.0), at=5.0)

    assert (first.replaced_until, second.replaced_until) == (10.0, 5.0)
    assert not is_alive(registry.key_records[endless.id], 5.0)
    assert second.expires_at == 12.0


async def test_what_cannot_be_rotated_makes_no_key() -> None:
    """Foreign, ended and already rotated keys; a key has one successor."""
    registry = MemoryRegistry()
    foreign = await create_key(registry, "other", KeyRequest(), at=0.0)
    ended = await create_key(registry, "acme", KeyRequest(expires_in_s=1.0), at=0.0)
    own = await create_key(registry, "acme", KeyRequest(), at=0.0)
    await rotate_key(registry, "acme", own.id, RotateRequest(), at=1.0)
    known = set(registry.key_records)

    for key, error in ((foreign.id, NotFound), (ended.id, Conflict), (own.id, Conflict)):
        with pytest.raises(error):
            await rotate_key(registry, "acme", key, RotateRequest(), at=2.0)

    assert set(registry.key_records) == known


async def test_a_rotation_that_loses_its_race_leaves_no_second_successor() -> None:
    """The key was revoked between the look and the change: what was made for it is revoked too."""
    registry = MemoryRegistry()
    old = await create_key(registry, "acme", KeyRequest(), at=0.0)
    revoke_behind = registry.on_change

    def revoke(key: str, record: object) -> None:
        if record is not None and not key.endswith(old.id):
            revoke_behind.clear()
            kept = registry.key_records[old.id]
            registry.key_records[old.id] = msgspec.structs.replace(kept, revoked=True)

    registry.on_change.append(revoke)
    with pytest.raises(Conflict):
        await rotate_key(registry, "acme", old.id, RotateRequest(), at=1.0)

    assert all(record.revoked for record in registry.key_records.values())


async def test_an_operators_key_comes_from_an_operator_only() -> None:
    """A tenant's admin can neither make, nor rotate, nor end one."""
    registry = MemoryRegistry()
    asked = KeyRequest(scopes=("operator",))
    with pytest.raises(Forbidden):
        await create_key(registry, "acme", asked, at=0.0)
    made = await create_key(registry, "acme", asked, at=0.0, by_operator=True)
    with pytest.raises(Forbidden):
        await rotate_key(registry, "acme", made.id, RotateRequest(), at=1.0)
    with pytest.raises(Forbidden):
        await revoke_key(registry, "acme", made.id, at=1.0)

    again = await rotate_key(registry, "acme", made.id, RotateRequest(), at=1.0, by_operator=True)
    await revoke_key(registry, "acme", made.id, at=1.0, by_operator=True)
    assert again.scopes == ("operator",)


async def test_ended_keys_are_forgotten_in_the_end() -> None:
    """They neither count against the tenant nor grow without bound."""
    registry = MemoryRegistry()
    first = await create_key(registry, "acme", KeyRequest(expires_in_s=1.0), at=0.0)
    record = registry.key_records[first.id]
    for number in range(DEAD_KEYS_KEPT):
        registry.key_records[str(number)] = msgspec.structs.replace(record, id=str(number), created_at=1.0)

    await create_key(registry, "acme", KeyRequest(), at=5.0)

    assert first.id not in registry.key_records
    assert len(registry.key_records) == DEAD_KEYS_KEPT + 1


async def test_a_break_glass_key_is_an_operators() -> None:
    """Made by operators, for the scope operator alone; its successor is one too."""
    registry = MemoryRegistry()
    asked = KeyRequest(scopes=("operator",), break_glass=True)
    made = await create_key(registry, "ops", asked, at=0.0, by_operator=True)
    assert made.break_glass
    with pytest.raises(Forbidden):
        await create_key(registry, "ops", asked, at=0.0)
    for wrong in (
        KeyRequest(scopes=("operator", "invoke"), break_glass=True),
        KeyRequest(scopes=("admin",), break_glass=True),
        KeyRequest(scopes=("operator",), certificate="ops", break_glass=True),
    ):
        with pytest.raises(BadInput):
            await create_key(registry, "ops", wrong, at=0.0, by_operator=True)
    after = await rotate_key(registry, "ops", made.id, RotateRequest(), at=0.0, by_operator=True)
    assert after.break_glass
    assert [key.break_glass for key in list_keys(registry, "ops")] == [True, True]
