"""Which key seals a tenant's blobs, and what is said where there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.blobs import BlobsDown, BlobsErased, NoBlobStore
from pilotlight_core.host.foundations import WrongFoundation
from pilotlight_gateway.secrets.data_key_store import MemoryDataKeys
from pilotlight_gateway.secrets.data_keys import HELD_S, DataKeys
from pilotlight_gateway.secrets.key_opening import open_key_pair
from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey
from pilotlight_gateway.secrets.tenant_blob_keys import THEN, WHAT, PlatformBlobs, TenantBlobKeys
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.gateway.secrets.makers import AT
from tests.gateway.world import Clock

SHA = "ab" * 32


@dataclass(kw_only=True)
class Keyed:
    """The keys of one process over stored ones."""

    store: MemoryDataKeys = field(default_factory=MemoryDataKeys)
    platform: MemoryPlatformKey = field(default_factory=MemoryPlatformKey)
    former: MemoryPlatformKey | None = None
    clock: Clock = field(default_factory=lambda: Clock(0.0))
    keys: TenantBlobKeys = field(init=False)

    def __post_init__(self) -> None:
        data_keys = DataKeys(self.store, self.platform, self.former, self.clock, what=WHAT, then=THEN, spares=True)
        self.keys = TenantBlobKeys(self.store, data_keys, lambda: AT, self.clock)

    async def name(self, tenant: str = "acme") -> str:
        found = await self.keys.find(tenant)
        return "" if found is None else found.name(SHA)


async def test_a_key_is_made_for_the_first_blob_and_found_by_others() -> None:
    """Whoever shares the platform's key; each tenant has its own."""
    one = Keyed()
    other = Keyed(store=one.store, platform=one.platform)
    assert await one.name() == await other.name() == ""

    made = await one.keys.make("acme")
    assert await other.name() == await one.name() == made.name(SHA)
    assert (await other.keys.make("acme")).name(SHA) == made.name(SHA)
    assert (await other.keys.make("rival")).name(SHA) != made.name(SHA)


async def test_it_is_asked_for_once_in_a_while() -> None:
    """A key service is not asked for each blob."""
    keyed = Keyed()
    await keyed.keys.make("acme")
    fresh = Keyed(store=keyed.store, platform=keyed.platform)
    for _ in range(5):
        await fresh.name()
    assert keyed.platform.opened == 2
    fresh.clock.at += HELD_S
    await fresh.name()
    assert keyed.platform.opened == 3


async def test_a_key_takes_over_and_no_blob_is_lost() -> None:
    """Their names stay."""
    keyed = Keyed()
    name = (await keyed.keys.make("acme")).name(SHA)
    later = Keyed(store=keyed.store, platform=MemoryPlatformKey(name="memory:2"), former=keyed.platform)

    assert await later.name() == name
    assert await Keyed(store=keyed.store, platform=later.platform).name() == name


async def test_what_a_lost_key_sealed_is_gone_and_new_blobs_are_sealed_anew() -> None:
    """As its operator said by name."""
    keyed = Keyed()
    name = (await keyed.keys.make("acme")).name(SHA)
    later = Keyed(store=keyed.store, platform=MemoryPlatformKey(name="memory:2"))
    await later.keys.keys.claim(adopt=True)

    assert await later.name() not in ("", name)
    assert (await later.keys.make("acme")).name(SHA) == await later.name()


async def test_a_key_that_cannot_be_used_is_the_platforms_fault() -> None:
    """And no blob is taken for missing then."""
    keyed = Keyed()
    await keyed.keys.make("acme")
    for platform, error in (
        (MemoryPlatformKey(name="memory:2"), NoBlobStore),
        (MemoryPlatformKey(refused=True), NoBlobStore),
        (MemoryPlatformKey(down=True), BlobsDown),
    ):
        other = Keyed(store=keyed.store, platform=platform)
        with pytest.raises(error):
            await other.keys.find("acme")
        with pytest.raises(error):
            await other.keys.make("acme")


async def test_a_key_that_was_destroyed_is_found_no_more() -> None:
    """Once it is forgotten here."""
    keyed = Keyed()
    name = (await keyed.keys.make("acme")).name(SHA)
    assert await keyed.store.erase_data_key("acme")
    assert not await keyed.store.erase_data_key("acme")
    assert await keyed.name() == name
    keyed.keys.forget("acme")
    assert await keyed.name() == ""


def blobs_of(bus: Bus, folder: Path, key: str, *, seals: bool) -> PlatformBlobs:
    url = f"file://{folder}/{key}" if key else ""
    return PlatformBlobs(f"file://{folder}/blobs", bus, open_key_pair(url, "", folder), seals=seals)


async def test_who_seals_without_the_key_does_not_start(
    bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal names the flag; who only has to open says so, and starts."""
    first = blobs_of(bus, tmp_path, "a", seals=True)
    await first.keys.keys.claim(adopt=True)
    await first.check()
    assert (tmp_path / "a").exists()
    with pytest.raises(WrongFoundation, match=r"--encrypt-blobs needs the platform's key: there is no key .*/b"):
        await blobs_of(bus, tmp_path, "b", seals=True).check()
    await blobs_of(bus, tmp_path, "b", seals=False).check()
    assert "blobs of this platform are sealed, and cannot be opened here" in "".join(capsys.readouterr())
    with pytest.raises(WrongFoundation, match="--secrets-key: 'vault://x' is no key"):
        open_key_pair("vault://x", "", tmp_path)


async def test_a_destroyed_key_is_overwritten_on_the_bus(bus: Bus, tmp_path: Path) -> None:
    """It is found no more, and no other one is made, by a process that has not heard of it either."""
    sealing = blobs_of(bus, tmp_path, "a", seals=True)
    await sealing.keys.keys.claim(adopt=True)
    await sealing.keys.make("erased")
    store = sealing.keys.store

    assert await store.erase_data_key("erased")
    assert not await store.erase_data_key("erased")
    sealing.keys.forget("erased")
    assert not await sealing.keys.is_there("erased")
    assert await sealing.keys.find("erased") is None
    for refused in (sealing.keys.make, sealing.keys.find_to_write):
        with pytest.raises(BlobsErased, match="The tenant erased was erased"):
            await refused("erased")


@pytest.mark.parametrize("seals", [False, True])
async def test_who_starts_before_the_first_gateway_goes_on_and_checks_later(tmp_path: Path, *, seals: bool) -> None:
    """The bucket of the keys is made by a gateway; a missing one is no end of the duties."""
    async with (
        embedded_nats(tmp_path / "nats") as server,
        connect(server.url, name="duties", makes_streams=False) as bus,
    ):
        duties = blobs_of(bus, tmp_path, "a", seals=seals)
        assert not await duties.check_if_made()
        async with connect(server.url, name="gateway"):
            assert await duties.check_if_made()


async def test_a_key_that_cannot_be_opened_is_never_replaced_unasked() -> None:
    """One that an earlier key has sealed, and that was not sealed anew when the next one took over twice."""
    keyed = Keyed()
    name = (await keyed.keys.make("acme")).name(SHA)
    keyed.store.platform = "memory:3"
    later = Keyed(store=keyed.store, platform=MemoryPlatformKey(name="memory:3"))
    for asked in (later.keys.make, later.keys.find):
        with pytest.raises(NoBlobStore):
            await asked("acme")
    with_it = Keyed(store=keyed.store, platform=later.platform, former=keyed.platform)
    assert (await with_it.keys.make("acme")).name(SHA) == name
