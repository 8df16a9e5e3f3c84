"""Data keys of tenants: made once, sealed by the platform's key, held for a while, and forgotten when told."""

from __future__ import annotations

import pytest

from pilotlight_gateway.secrets.data_key_store import DataKeyErased, MemoryDataKeys
from pilotlight_gateway.secrets.data_keys import DataKeys, OtherPlatformKey
from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey, NoPlatformKey
from pilotlight_gateway.secrets.secret_records import DataKeyRecord
from tests.gateway.secrets.makers import AT


def keys_over(store: MemoryDataKeys, platform: MemoryPlatformKey, former: MemoryPlatformKey | None = None) -> DataKeys:
    return DataKeys(store, platform, former, what="things", then=", and more")


async def test_a_data_key_is_made_once_and_opens_for_whom_has_the_platforms() -> None:
    """It is stored sealed."""
    store, platform = MemoryDataKeys(), MemoryPlatformKey()
    made = await keys_over(store, platform).make("acme", AT)

    assert made == await keys_over(store, platform).make("acme", AT + 1)
    assert await keys_over(store, platform).open(store.keys["acme"]) == made[1]
    assert made[1] not in store.keys["acme"].sealed


async def test_the_refusal_says_what_is_sealed_and_what_follows() -> None:
    """To whom has another key."""
    store = MemoryDataKeys()
    await keys_over(store, MemoryPlatformKey()).make("acme", AT)
    other = keys_over(store, MemoryPlatformKey(name="memory:2"))

    with pytest.raises(OtherPlatformKey, match=r"things of this .* memory:2: .* --adopt secrets_key, and more"):
        await other.open(store.keys["acme"])
    assert await other.claim(adopt=True) == "memory:2"
    assert await other.open(store.keys["acme"]) is None


async def test_no_key_is_made_or_opened_after_an_erasure() -> None:
    """Nor is one sealed anew that was read before it; that of another tenant is."""

    class ErasedMeanwhile(MemoryDataKeys):
        async def data_keys(self) -> list[DataKeyRecord]:
            found = await super().data_keys()
            await self.erase_data_key("acme")
            return found

    store, former = ErasedMeanwhile(), MemoryPlatformKey()
    for tenant in ("acme", "rival"):
        await keys_over(store, former).make(tenant, AT)
    read, later = store.keys["acme"], keys_over(store, MemoryPlatformKey(name="memory:2"), former)

    assert await later.reseal_all() == 1
    assert not await later.is_there("acme")
    assert await later.is_there("rival")
    assert await later.open(read) is await later.open(store.keys["acme"]) is None
    with pytest.raises(DataKeyErased):
        await later.make("acme", AT)
    assert not await later.is_there("acme")


async def test_a_key_that_is_forgotten_is_opened_anew() -> None:
    """Of that tenant alone."""
    store, platform = MemoryDataKeys(), MemoryPlatformKey()
    keys = keys_over(store, platform)
    for tenant in ("acme", "rival"):
        await keys.make(tenant, AT)
    opened = platform.opened
    keys.forget("acme")
    for tenant in ("acme", "rival"):
        await keys.open(store.keys[tenant])
    assert platform.opened == opened + 1


async def test_a_former_key_that_is_not_needed_is_not_asked_for() -> None:
    """Its service may be gone since."""

    class Gone(MemoryPlatformKey):
        async def identity(self, *, create: bool = False) -> str:
            raise NoPlatformKey(f"it is gone, whether it is made or not: {create}")

    store, platform = MemoryDataKeys(), MemoryPlatformKey()
    made = await keys_over(store, platform).make("acme", AT)
    assert await keys_over(store, platform, Gone()).make("acme", AT) == made


async def test_who_takes_over_seals_all_anew() -> None:
    """And is what they are sealed by from then on."""
    store, former = MemoryDataKeys(), MemoryPlatformKey()
    for tenant in ("acme", "rival"):
        await keys_over(store, former).make(tenant, AT)
    later = keys_over(store, MemoryPlatformKey(name="memory:2"), former)
    assert await later.reseal_all() == 2
    assert {key.platform_key for key in store.keys.values()} == {"memory:2"}
