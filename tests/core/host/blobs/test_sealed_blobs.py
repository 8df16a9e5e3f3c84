"""Sealed blobs beside those that were stored in clear."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from pilotlight_core.host.blobs import (
    BadBlob,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    BlobsErased,
    FolderBlobs,
    MemoryBlobKeys,
    MemoryBlobs,
    NoBlobStore,
    SealedBlobs,
)
from pilotlight_core.host.blobs.blob_port import BlobChanged
from pilotlight_core.host.blobs.blob_sealing import SEALED_NAME, BlobKey, opened
from pilotlight_core.host.blobs.sealed_blobs import HandedBlob
from pilotlight_core.model.errors import BadInput

CONTENT = b"nobody reads this in the store" * 5_000
SHA = hashlib.sha256(CONTENT).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


class LinkedBlobs(MemoryBlobs):
    """Gives links, as S3 does."""

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:
        return f"https://blobs/{tenant}/{sha256}?for={seconds:g}"


class Sealing:
    """One store under a platform that seals, and the same without."""

    def __init__(self) -> None:
        self.backend, self.keys = LinkedBlobs(), MemoryBlobKeys()
        self.on = SealedBlobs(self.backend, self.keys, seals=True)
        self.off = SealedBlobs(self.backend, self.keys, seals=False)

    @property
    def names(self) -> list[str]:
        return sorted(name for _, name in self.backend.kept)


async def test_the_store_has_neither_contents_nor_digests() -> None:
    """Of what is put while sealing is on."""
    sealing = Sealing()
    assert await sealing.on.put("acme", SHA, CONTENT) == len(CONTENT)

    ((tenant, name),) = sealing.backend.kept
    assert tenant == "acme"
    assert SEALED_NAME.fullmatch(name)
    assert SHA not in name
    assert CONTENT[:30] not in sealing.backend.kept[tenant, name]


async def test_one_content_is_one_blob_of_a_tenant_and_another_of_the_next() -> None:
    """Nobody who reads the store sees that two tenants have the same."""
    sealing = Sealing()
    for tenant in ("acme", "acme", "rival"):
        await sealing.on.put(tenant, SHA, CONTENT)

    assert len(sealing.names) == len(set(sealing.names)) == 2
    assert not [data for data in sealing.backend.kept.values() if CONTENT[:30] in data]


async def test_a_running_platform_can_switch_it_on_and_off() -> None:
    """What there is stays readable, and is sealed when it is put again; nothing is there twice."""
    sealing = Sealing()
    await sealing.off.put("acme", SHA, CONTENT)
    await sealing.on.put("acme", OTHER, b"other")
    assert await sealing.on.read("acme", SHA) == CONTENT
    assert await sealing.on.head("acme", SHA, 30) == CONTENT[:30]
    assert SHA in sealing.names

    await sealing.on.put("acme", SHA, CONTENT)
    assert SHA not in sealing.names
    for store in (sealing.on, sealing.off):
        assert await store.read("acme", SHA) == CONTENT
        assert {info.sha256: info.size async for info in store.listed("acme")} == {SHA: len(CONTENT), OTHER: 5}
    assert await sealing.off.put("acme", SHA, CONTENT) == len(CONTENT)
    assert SHA not in sealing.names

    await sealing.off.put("acme", hashlib.sha256(b"late").hexdigest(), b"late")
    assert len(sealing.names) == 3
    await sealing.off.delete("acme", SHA)
    assert len(sealing.names) == 2


async def test_what_lies_in_clear_is_sealed_in_its_place() -> None:
    """And is the same to everybody; what was damaged stays, and what is gone is no fault."""
    sealing = Sealing()
    await sealing.off.put("acme", SHA, CONTENT)
    await sealing.off.put("rival", OTHER, b"other")
    await sealing.on.put("rival", SHA, CONTENT)
    assert {(one.tenant, one.sha256) async for one in sealing.on.in_clear()} == {("acme", SHA), ("rival", OTHER)}

    assert await sealing.on.seal_stored("acme", SHA)
    assert not await sealing.on.seal_stored("acme", SHA)
    assert await sealing.on.read("acme", SHA) == CONTENT
    sealing.backend.kept["rival", OTHER] = b"damaged"
    with pytest.raises(BadBlob):
        await sealing.on.seal_stored("rival", OTHER)
    assert [one.sha256 async for one in sealing.on.in_clear()] == [OTHER]
    assert len(sealing.names) == 3


async def test_wrong_content_leaves_nothing() -> None:
    """Its digest is checked before it has a name."""
    sealing = Sealing()
    with pytest.raises(BadBlob, match=SHA):
        await sealing.on.put("acme", SHA, b"other")
    assert sealing.names == []


@pytest.mark.parametrize("name", ["f" * 96, "../" + SHA, "F" * 64])
async def test_nobody_asks_by_a_stored_name(name: str) -> None:
    """Whoever uploads names digests alone, so that none puts what looks sealed."""
    sealing = Sealing()
    with pytest.raises(BadInput):
        await sealing.on.put("acme", name, b"")
    with pytest.raises(BadInput):
        await sealing.off.read("acme", name)
    with pytest.raises(BadInput):
        await sealing.on.delete("acme", name)


async def test_a_blob_that_was_changed_in_its_store_is_refused() -> None:
    """Also one that was exchanged for another of the tenant's, or brought from another tenant."""
    sealing = Sealing()
    for tenant in ("acme", "rival"):
        await sealing.on.put(tenant, SHA, CONTENT)
        await sealing.on.put(tenant, OTHER, b"other")
    kept, acme, rival = sealing.backend.kept, sealing.keys.keys["acme"], sealing.keys.keys["rival"]
    for stolen in (kept["acme", acme.name(OTHER)], kept["rival", rival.name(SHA)], b"", CONTENT):
        kept["acme", acme.name(SHA)] = stolen
        with pytest.raises(BlobChanged, match=SHA):
            await sealing.on.read("acme", SHA)
        with pytest.raises(BlobChanged, match=SHA):
            await sealing.on.head("acme", SHA, 10)


async def test_what_is_broken_is_healed_by_what_is_put_and_no_good_copy_goes(tmp_path: Path) -> None:
    """In a folder, where what is there is not written again else; sealing may be on or off."""
    backend, keys = FolderBlobs(tmp_path), MemoryBlobKeys()
    on, off = SealedBlobs(backend, keys, seals=True), SealedBlobs(backend, keys, seals=False)
    await on.put("acme", SHA, CONTENT)
    path = backend.path("acme", keys.keys["acme"].name(SHA))
    whole = path.read_bytes()

    for broken in (whole[:-1], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        for store in (on, off):
            await backend.put("acme", path.name, broken, anew=True)
            await store.put("acme", SHA, CONTENT)
            assert await store.read("acme", SHA) == CONTENT
        await backend.put("acme", path.name, broken, anew=True)
        await backend.put("acme", SHA, CONTENT)
        assert await on.seal_stored("acme", SHA)
        assert await on.read("acme", SHA) == CONTENT
        assert [one.sha256 async for one in on.in_clear()] == []


class SealedBetween(MemoryBlobs):
    """A blob is sealed by another process after it was looked for under its sealed name."""

    def __init__(self) -> None:
        super().__init__()
        self.sealer = SealedBlobs(self, MemoryBlobKeys(), seals=True)
        self.waits = False

    async def _before(self, sha256: str) -> None:
        if self.waits and sha256 == SHA:
            self.waits = False
            await self.sealer.seal_stored("acme", SHA)

    async def read(self, tenant: str, sha256: str) -> bytes:
        await self._before(sha256)
        return await super().read(tenant, sha256)

    async def renew(self, tenant: str, sha256: str) -> bool:
        await self._before(sha256)
        return await super().renew(tenant, sha256)

    async def stored(self, tenant: str, digests: Iterable[str]) -> dict[str, BlobInfo]:
        wanted = list(digests)
        for digest in wanted:
            await self._before(digest)
        return await super().stored(tenant, wanted)


async def test_a_blob_that_is_sealed_meanwhile_is_found() -> None:
    """By whoever had not found it sealed, and then not in clear."""
    backend = SealedBetween()
    blobs = backend.sealer
    for look in ("read", "head", "stored", "renew"):
        backend.kept.clear()
        await backend.put("acme", SHA, CONTENT)
        backend.waits = True
        if look == "read":
            assert await blobs.read("acme", SHA) == CONTENT
        elif look == "head":
            assert await blobs.head("acme", SHA, 30) == CONTENT[:30]
        elif look == "stored":
            assert SHA in await blobs.stored("acme", [SHA])
        else:
            assert await blobs.renew("acme", SHA)
        assert not backend.waits


async def test_a_tenant_whose_key_cannot_be_used_hides_nobody_elses_blobs() -> None:
    """From a list of all; its own list says so."""

    class SomeKeys(MemoryBlobKeys):
        locked = False

        async def find(self, tenant: str) -> BlobKey | None:
            if self.locked and tenant == "acme":
                raise NoBlobStore("sealed by a third key")
            return await super().find(tenant)

    keys = SomeKeys()
    blobs = SealedBlobs(MemoryBlobs(), keys, seals=True)
    for tenant in ("acme", "rival"):
        await blobs.put(tenant, SHA, CONTENT)
    keys.locked = True
    assert [one.tenant async for one in blobs.listed()] == ["rival"]
    with pytest.raises(NoBlobStore):
        assert [one async for one in blobs.listed("acme")]


async def test_for_an_erased_tenant_nothing_is_stored() -> None:
    """Sealed or in clear; the refusal is not that of a store that is away."""
    sealing = Sealing()
    sealing.keys.erased.add("acme")
    for store in (sealing.on, sealing.off):
        with pytest.raises(BlobsErased, match="The tenant acme was erased"):
            await store.put("acme", SHA, CONTENT)
    assert not sealing.names
    assert not issubclass(BlobsErased, BlobsDown)


async def test_without_its_key_a_blob_is_as_if_it_were_not_there() -> None:
    """Which is what destroying the key comes to."""
    sealing = Sealing()
    await sealing.on.put("acme", SHA, CONTENT)
    del sealing.keys.keys["acme"]

    with pytest.raises(BlobMissing):
        await sealing.on.read("acme", SHA)
    assert await sealing.on.stored("acme", [SHA]) == {}
    assert [info async for info in sealing.on.listed()] == []
    assert not await sealing.on.renew("acme", SHA)


async def test_a_node_is_handed_one_blob() -> None:
    """A link to what is stored, its name, and a key that opens it alone; in clear what it was before."""
    sealing = Sealing()
    await sealing.on.put("acme", SHA, CONTENT)
    await sealing.off.put("acme", OTHER, b"other")
    name = sealing.keys.keys["acme"].name(SHA)
    handed = await sealing.off.hand("acme", SHA, 60.0)

    assert handed[:2] == (f"https://blobs/acme/{name}?for=60", name)
    stored = sealing.backend.get("acme", handed.name)
    assert b"".join([one async for one in opened(handed.key, "acme", SHA, stored)]) == CONTENT
    assert await sealing.off.hand("acme", OTHER, 60.0) == HandedBlob(f"https://blobs/acme/{OTHER}?for=60")


async def test_what_the_store_says_is_said() -> None:
    """It is away."""
    sealing = Sealing()
    await sealing.on.put("acme", SHA, CONTENT)
    sealing.backend.down = True

    with pytest.raises(BlobsDown):
        await sealing.on.read("acme", SHA)
    with pytest.raises(BlobsDown):
        await sealing.on.hand("acme", SHA, 60.0)
    with pytest.raises(BlobsDown):
        await sealing.on.erase("acme")
