"""Values are sealed under two keys, and nothing is lost between."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_gateway.secrets.data_keys import HELD_S, OtherPlatformKey
from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey, NoPlatformKey, PlatformKeyDown
from pilotlight_gateway.secrets.tenant_vault import SecretsLost
from tests.gateway.secrets.makers import AT, VALUE, Vaulted
from tests.gateway.secrets.vaults import vault_over


async def test_a_value_comes_out_as_it_went_in() -> None:
    """And neither it nor a key stands in a record."""
    kept = Vaulted()
    record = await kept.set(value=VALUE)

    assert await kept.values("token") == {"token": VALUE}
    assert VALUE.encode() not in record.sealed
    assert kept.platform.key not in kept.store.keys["acme"].sealed
    assert record.data_key == kept.store.keys["acme"].id


async def test_no_two_sealed_values_are_alike() -> None:
    """Nobody sees that a value is what it was."""
    kept = Vaulted()
    assert (await kept.set()).sealed != (await kept.set()).sealed


async def test_a_sealed_value_opens_for_its_name_and_tenant_alone() -> None:
    """Whoever writes records cannot move it to another."""
    kept = Vaulted()
    record = await kept.set("token")
    await kept.set("other")
    await kept.set("token", tenant="rival")
    moved = replace(record, name="other")
    stolen = replace(record, tenant="rival", data_key=kept.store.keys["rival"].id)

    with pytest.raises(SecretsLost):
        await kept.vault.open_all("acme", {"other": moved})
    with pytest.raises(SecretsLost):
        await kept.vault.open_all("rival", {"token": stolen})


async def test_each_tenant_has_a_data_key() -> None:
    """Which does not open as another's."""
    kept = Vaulted()
    await kept.set()
    await kept.set(tenant="rival")
    keys = kept.store.keys
    kept.store.keys["rival"] = replace(keys["rival"], sealed=keys["acme"].sealed)
    fresh = Vaulted(store=kept.store, platform=kept.platform)

    with pytest.raises(NoPlatformKey):
        await fresh.values("token", tenant="rival")


async def test_of_two_gateways_that_make_a_data_key_the_first_has_its_way() -> None:
    """Both seal by it."""
    one = Vaulted()
    other = Vaulted(store=one.store, platform=one.platform)
    await one.set("a")
    kept = one.store.keys["acme"]
    late = replace(kept, id="dk_late")

    assert await one.store.replace_data_key(late, "") == kept
    await other.set("b")
    assert await one.values("a", "b") == {"a": VALUE, "b": VALUE}


async def test_a_gateway_with_another_key_gives_and_takes_nothing() -> None:
    """It says which there are, and what to do."""
    one = Vaulted()
    await one.set()
    other = Vaulted(store=one.store, platform=MemoryPlatformKey(name="memory:2"))

    with pytest.raises(OtherPlatformKey, match="under the key memory:1, and this process has memory:2: give all"):
        await other.vault.seal("rival", "token", VALUE, AT)
    with pytest.raises(OtherPlatformKey):
        await other.values("token")
    assert one.store.platform == "memory:1"


async def test_a_lost_platform_key_is_given_up_by_name() -> None:
    """What it sealed is lost, and says so; what is set anew is there."""
    one = Vaulted()
    await one.set("a")
    await one.set("b")
    fresh = Vaulted(store=one.store, platform=MemoryPlatformKey(name="memory:2"))
    await fresh.vault.keys.claim(adopt=True)

    with pytest.raises(SecretsLost, match="a, b"):
        await fresh.values("a", "b")
    await fresh.set("b", "another value of it")
    with pytest.raises(SecretsLost, match=r"^a$"):
        await fresh.values("a", "b")
    assert await fresh.values("b") == {"b": "another value of it"}
    with pytest.raises(OtherPlatformKey):
        await one.vault.seal("acme", "c", VALUE, AT)


async def test_a_key_takes_over_from_a_former_one_and_nothing_is_lost() -> None:
    """At the next use of a tenant's, or of all at once; without the former one from then on."""
    one = Vaulted()
    for tenant in ("acme", "rival", "third"):
        await one.set(tenant=tenant)
    before = {tenant: key.id for tenant, key in one.store.keys.items()}
    fresh = Vaulted(store=one.store, platform=MemoryPlatformKey(name="memory:2"), former=one.platform)

    assert await fresh.values("token") == {"token": VALUE}
    assert (await fresh.set("other", tenant="rival")).data_key == before["rival"]
    assert await fresh.vault.keys.reseal_all() == 1
    assert await fresh.vault.keys.reseal_all() == 0

    alone = Vaulted(store=one.store, platform=fresh.platform)
    assert {tenant: key.id for tenant, key in one.store.keys.items()} == before
    for tenant in before:
        assert await alone.values("token", tenant=tenant) == {"token": VALUE}
    with pytest.raises(OtherPlatformKey):
        await one.vault.keys.claim()


async def test_a_former_key_that_is_gone_takes_nothing_over() -> None:
    """Nothing is claimed before it has answered."""
    one = Vaulted()
    await one.set()
    gone = MemoryPlatformKey(name="memory:1", refused=True)
    fresh = Vaulted(store=one.store, platform=MemoryPlatformKey(name="memory:2"), former=gone)

    with pytest.raises(NoPlatformKey):
        await fresh.vault.keys.reseal_all()
    assert one.store.platform == "memory:1"
    assert await one.values("token") == {"token": VALUE}


async def test_a_key_service_is_asked_once_in_a_while() -> None:
    """What it has disabled opens for five minutes more, and not longer."""
    kept = Vaulted()
    await kept.set()
    for _ in range(5):
        await kept.values("token")
    assert kept.platform.opened == 1

    kept.platform.key = bytes(32)
    assert await kept.values("token") == {"token": VALUE}
    kept.clock.at += HELD_S
    with pytest.raises(NoPlatformKey):
        await kept.values("token")


async def test_a_key_that_does_not_answer_loses_nothing() -> None:
    """The same value opens when it does again."""
    kept = Vaulted()
    await kept.set()
    restarted = vault_over(kept.store, kept.platform)
    kept.platform.down = True
    with pytest.raises(PlatformKeyDown):
        await restarted.open_all("acme", {"token": kept.store.records["acme", "token"]})
    kept.platform.down = False
    assert await restarted.open_all("acme", {"token": kept.store.records["acme", "token"]}) == {"token": VALUE}


async def test_a_gateway_that_died_between_two_writes_is_gone_on_from() -> None:
    """After the platform's key was claimed, and after a data key was stored."""
    kept = Vaulted()
    await kept.vault.keys.claim()
    assert (kept.store.platform, kept.store.keys) == ("memory:1", {})
    await kept.vault.seal("acme", "token", VALUE, AT)
    assert kept.store.records == {}

    restarted = Vaulted(store=kept.store, platform=kept.platform)
    record = await restarted.set()
    assert record.data_key == kept.store.keys["acme"].id
    assert await kept.values("token") == {"token": VALUE}


async def test_nothing_opens_to_nothing() -> None:
    """A version without secrets asks no key."""
    kept = Vaulted()
    kept.platform.down = True
    assert await kept.vault.open_all("acme", {}) == {}
