"""Blobs in memory: the fake for tests."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from pilotlight_core.host.blobs.blob_port import (
    BlobContent,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    DigestChecker,
    ErasedBlobs,
    check_stored,
    pieces,
)
from pilotlight_core.host.blobs.whole_reads import BlobSource
from pilotlight_core.model.ids import token

T = TypeVar("T")


class MemoryBlobs:
    """Stores blobs in `kept`. While `down` is set, it raises BlobsDown."""

    def __init__(self, wall: Callable[[], float] = lambda: 0.0) -> None:
        self._wall = wall
        self.kept: dict[tuple[str, str], bytes] = {}
        self.puts = 0
        self.at: dict[tuple[str, str], float] = {}
        """Unix seconds of each blob's last `put` or `renew`, by `wall` unless a test sets it."""
        self.down = False
        self.id = ""

    async def put(self, tenant: str, sha256: str, content: BlobContent, *, anew: bool = True) -> int:  # noqa: ARG002 - always
        check_stored(tenant, sha256)
        self._reach()
        self.puts += 1
        checker = DigestChecker(sha256)
        parts = []
        async for piece in pieces(content):
            checker.add(piece)
            parts.append(piece)
        checker.finish()
        self.kept[tenant, sha256] = b"".join(parts)
        self.at[tenant, sha256] = self._wall()
        return checker.size

    async def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        async for piece in pieces(await self.read(tenant, sha256)):
            yield piece

    async def read(self, tenant: str, sha256: str) -> bytes:
        check_stored(tenant, sha256)
        self._reach()
        try:
            return self.kept[tenant, sha256]
        except KeyError:
            raise BlobMissing(f"There is no blob {sha256}.") from None

    async def read_whole(self, tenant: str, sha256: str, work: Callable[[BlobSource], T]) -> T:
        content = b"".join([piece async for piece in self.get(tenant, sha256)])
        return await asyncio.to_thread(work, io.BytesIO(content))

    async def head(self, tenant: str, sha256: str, size: int) -> bytes:
        return (await self.read(tenant, sha256))[:size]

    async def stored(self, tenant: str, digests: Iterable[str]) -> dict[str, BlobInfo]:
        self._reach()
        return {digest: self._info(tenant, digest) for digest in digests if (tenant, digest) in self.kept}

    async def listed(self, tenant: str | None = None) -> AsyncIterator[BlobInfo]:
        self._reach()
        for owner, sha256 in list(self.kept):
            if tenant in (None, owner):
                yield self._info(owner, sha256)

    async def renew(self, tenant: str, sha256: str) -> bool:
        check_stored(tenant, sha256)
        self._reach()
        if (tenant, sha256) not in self.kept:
            return False
        self.at[tenant, sha256] = self._wall()
        return True

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:  # noqa: ARG002 - none gives one
        return ""

    async def delete(self, tenant: str, sha256: str) -> None:
        check_stored(tenant, sha256)
        self._reach()
        self.kept.pop((tenant, sha256), None)

    async def erase(self, tenant: str) -> ErasedBlobs:
        self._reach()
        gone = [key for key in self.kept if key[0] == tenant]
        return ErasedBlobs(len(gone), sum(len(self.kept.pop(key)) for key in gone))

    async def store_id(self, *, create: bool) -> str:
        self._reach()
        if create and not self.id:
            self.id = token()
        return self.id

    async def aclose(self) -> None:
        """Nothing to close."""

    def _info(self, tenant: str, sha256: str) -> BlobInfo:
        key = (tenant, sha256)
        return BlobInfo(tenant, sha256, len(self.kept[key]), self.at.get(key, 0.0))

    def _reach(self) -> None:
        if self.down:
            raise BlobsDown("The blob store cannot be reached.")
