"""Blobs that are sealed in their store, or were put there before they were.

Whoever asks here names a blob by the digest of its content, as of every store. What lies in the store below is sealed
under another name (`blob_sealing`); what was stored in clear, before sealing was switched on or after it was switched
off, is found under its digest. A tenant without a key has no sealed blob.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import structlog

from pilotlight_core.host.blobs.blob_port import (
    SHA256,
    BlobBackend,
    BlobChanged,
    BlobContent,
    BlobInfo,
    BlobMissing,
    DigestChecker,
    ErasedBlobs,
    NoBlobStore,
    check_blob,
    erased_blobs,
    pieces,
)
from pilotlight_core.host.blobs.blob_sealing import (
    KEY_BYTES,
    SEALED_NAME,
    BlobKey,
    content_size,
    length_for,
    opened,
    opened_head,
    sealed,
)

LOOKS = (True, False, True)
"""Where a blob is looked for, sealed or not: what seals it may have put the one and deleted the other in between."""

log = structlog.get_logger(__name__)


class BlobKeys(Protocol):
    """The keys of tenants. Both raise BlobsDown: they cannot be asked for, or (NoBlobStore) not be used."""

    async def find(self, tenant: str) -> BlobKey | None:
        """None: it has none, so that none of its blobs is sealed."""
        ...

    async def find_to_write(self, tenant: str) -> BlobKey | None:
        """As `find`. Raises BlobsErased: the tenant was erased."""
        ...

    async def make(self, tenant: str) -> BlobKey:
        """The tenant's, which is made if there is none. Raises BlobsErased: the tenant was erased."""
        ...


@dataclass(kw_only=True)
class MemoryBlobKeys:
    """`BlobKeys` in memory."""

    keys: dict[str, BlobKey] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)

    async def find(self, tenant: str) -> BlobKey | None:
        return self.keys.get(tenant)

    async def find_to_write(self, tenant: str) -> BlobKey | None:
        if tenant in self.erased:
            raise erased_blobs(tenant)
        return self.keys.get(tenant)

    async def make(self, tenant: str) -> BlobKey:
        if tenant in self.erased:
            raise erased_blobs(tenant)
        return self.keys.setdefault(tenant, BlobKey(tenant, os.urandom(KEY_BYTES)))


class HandedBlob(NamedTuple):
    """What a node needs to read one blob."""

    url: str
    """Where it is read; "": the store gives no links."""
    name: str = ""
    """Under which it is stored, if it is sealed."""
    key: bytes = b""
    """That opens it alone; empty: it is stored in clear."""


class SealedBlobs:
    """The `BlobStore` of gateways and duties. `seals`: whether what is put from now on is sealed."""

    def __init__(self, stored: BlobBackend, keys: BlobKeys, *, seals: bool) -> None:
        self._stored = stored
        self._keys = keys
        self._seals = seals

    async def put(self, tenant: str, sha256: str, content: BlobContent) -> int:
        check_blob(tenant, sha256)
        key = await (self._keys.make(tenant) if self._seals else self._keys.find_to_write(tenant))
        if key is None:
            return await self._stored.put(tenant, sha256, content)
        if self._seals or await self._stored.stored(tenant, [key.name(sha256)]):
            return await self._put(key, sha256, content)
        return await self._stored.put(tenant, sha256, content)

    async def _put(self, key: BlobKey, sha256: str, content: BlobContent) -> int:
        size = await self._renewed(key, sha256)
        if size is None:
            within: Any = sealed(key.of(sha256), key.tenant, sha256, _checked(sha256, content))
            async with aclosing(within):
                stored = await self._stored.put(key.tenant, key.name(sha256), within, anew=True)
            size = content_size(stored)
        await self._stored.delete(key.tenant, sha256)  # what was there in clear
        return size

    async def _renewed(self, key: BlobKey, sha256: str) -> int | None:
        """The size of a blob that is sealed there already, and opens to its end; None: it has to be put."""
        name, size = key.name(sha256), 0
        if not await self._stored.stored(key.tenant, [name]):
            return None
        found: Any = opened(key.of(sha256), key.tenant, sha256, self._stored.get(key.tenant, name))
        try:
            async with aclosing(found):
                async for piece in found:
                    size += len(piece)
        except (BlobChanged, BlobMissing):
            return None
        return size if await self._stored.renew(key.tenant, name) else None

    async def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        check_blob(tenant, sha256)
        for is_sealed in LOOKS:
            key = await self._keys.find(tenant) if is_sealed else None
            if is_sealed and key is None:
                continue
            stored: Any = self._stored.get(tenant, sha256 if key is None else key.name(sha256))
            async with aclosing(stored):
                try:
                    first = await anext(stored, b"")
                except BlobMissing:
                    continue
                content = _after(first, stored)
                async for piece in content if key is None else opened(key.of(sha256), tenant, sha256, content):
                    yield piece
                return
        raise BlobMissing(f"There is no blob {sha256}.")

    async def read(self, tenant: str, sha256: str) -> bytes:
        return b"".join([piece async for piece in self.get(tenant, sha256)])

    async def head(self, tenant: str, sha256: str, size: int) -> bytes:
        check_blob(tenant, sha256)
        for is_sealed in LOOKS:
            key = await self._keys.find(tenant) if is_sealed else None
            with suppress(BlobMissing):
                if key is not None:
                    beginning = await self._stored.head(tenant, key.name(sha256), length_for(size))
                    return opened_head(key.of(sha256), tenant, sha256, beginning, size)
                if not is_sealed:
                    return await self._stored.head(tenant, sha256, size)
        raise BlobMissing(f"There is no blob {sha256}.")

    async def stored(self, tenant: str, digests: Iterable[str]) -> dict[str, BlobInfo]:
        wanted = list(digests)
        for digest in wanted:
            check_blob(tenant, digest)
        found = dict[str, BlobInfo]()
        for is_sealed in LOOKS:
            key = await self._keys.find(tenant) if is_sealed else None
            missing = [digest for digest in wanted if digest not in found]
            if key is not None:
                names = {key.name(digest): digest for digest in missing}
                there = await self._stored.stored(tenant, names)
                found |= {names[name]: _shown(info, names[name]) for name, info in there.items()}
            elif not is_sealed:
                found |= await self._stored.stored(tenant, missing)
        return found

    async def listed(self, tenant: str | None = None) -> AsyncIterator[BlobInfo]:
        key: BlobKey | None = None
        owner = ""
        stored: Any = self._stored.listed(tenant)
        async with aclosing(stored):
            async for one in stored:
                if not SEALED_NAME.fullmatch(one.sha256):
                    yield one
                    continue
                if one.tenant != owner:
                    owner, key = one.tenant, await self._listing_key(one.tenant, is_alone=tenant is not None)
                # What another key has sealed, which is gone, is nobody's blob any more.
                if key is not None and (digest := key.digest(one.sha256)):
                    yield _shown(one, digest)

    async def _listing_key(self, tenant: str, *, is_alone: bool) -> BlobKey | None:
        """The key by which a tenant's blobs are listed; one that cannot be used hides them, and not those of others."""
        try:
            return await self._keys.find(tenant)
        except NoBlobStore as error:
            if is_alone:
                raise
            log.warning("a tenant's sealed blobs are not listed", tenant=tenant, why=error.detail)
            return None

    async def renew(self, tenant: str, sha256: str) -> bool:
        check_blob(tenant, sha256)
        for is_sealed in LOOKS:
            key = await self._keys.find(tenant) if is_sealed else None
            if is_sealed and key is None:
                continue
            if await self._stored.renew(tenant, sha256 if key is None else key.name(sha256)):
                return True
        return False

    async def delete(self, tenant: str, sha256: str) -> None:
        check_blob(tenant, sha256)
        key = await self._keys.find(tenant)
        if key is not None:
            await self._stored.delete(tenant, key.name(sha256))
        await self._stored.delete(tenant, sha256)

    async def hand(self, tenant: str, sha256: str, seconds: float) -> HandedBlob:
        """What a node needs to read this blob, by a link that is good for so long.

        Raises:
            BlobMissing, BlobsDown.
        """
        check_blob(tenant, sha256)
        key = await self._keys.find(tenant)
        if key is not None and await self._stored.stored(tenant, [name := key.name(sha256)]):
            return HandedBlob(await self._stored.link(tenant, name, seconds), name, key.of(sha256))
        return HandedBlob(await self._stored.link(tenant, sha256, seconds))

    async def in_clear(self) -> AsyncIterator[BlobInfo]:
        """All blobs that lie in clear."""
        stored: Any = self._stored.listed()
        async with aclosing(stored):
            async for one in stored:
                if SHA256.fullmatch(one.sha256):
                    yield one

    async def seal_stored(self, tenant: str, sha256: str) -> bool:
        """Seal a blob that lies in clear; False: it does not any more.

        Raises:
            BadBlob: it is damaged. BlobsDown.
        """
        key = await self._keys.make(tenant)
        if not await self._stored.stored(tenant, [sha256]):
            return False
        try:
            await self._put(key, sha256, self._stored.get(tenant, sha256))
        except BlobMissing:
            return False
        return True

    async def measure(self, tenant: str) -> ErasedBlobs:
        """How much is stored of a tenant, readable or not."""
        count = size = 0
        stored: Any = self._stored.listed(tenant)
        async with aclosing(stored):
            async for one in stored:
                count, size = count + 1, size + one.size
        return ErasedBlobs(count, size)

    async def erase(self, tenant: str) -> ErasedBlobs:
        """Delete all that is stored of a tenant, readable or not."""
        return await self._stored.erase(tenant)

    async def store_id(self, *, create: bool) -> str:
        return await self._stored.store_id(create=create)

    async def aclose(self) -> None:
        await self._stored.aclose()


def _shown(info: BlobInfo, digest: str) -> BlobInfo:
    return info._replace(sha256=digest, size=content_size(info.size))


async def _checked(sha256: str, content: BlobContent) -> AsyncIterator[bytes]:
    """The content; raises BadBlob at its end if its digest is another, so that nothing is stored."""
    checker = DigestChecker(sha256)
    async for piece in pieces(content):
        checker.add(piece)
        yield piece
    checker.finish()


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece
