"""The blobs of versions that are bound here: from a store that this node can read, or over links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from pilotlight_core.bus import BusError, NoResponders
from pilotlight_core.host.blobs import BlobMissing, BlobsDown, BlobStore, FolderBlobs, NoBlobStore
from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import Bind

ASK_S = 5.0
"""For one answer of a gateway."""
ASKS = 20
PAUSE_S = 0.25
"""Between two questions: a gateway may hear of a binding later than its node does."""
AGAIN = frozenset({"not_bound", "busy", "down"})
AT_ONCE = 32
"""Connections: more than files are fetched at a time, since manifests come beside them."""
CHUNK = 2**20
TIMEOUTS = (5.0, 30.0, 30.0, None)
"""Seconds to connect, without a byte read or written, and for a free connection."""
TRIES = 4
"""Of one blob, while nothing of it has come."""


class VersionFiles(Protocol):
    def get(self, bind: Bind, sha256: str) -> AsyncIterator[bytes]:
        """A blob of the version that `bind` names, in pieces of at most 1 MiB.

        Raises:
            BlobMissing, BlobsDown: with the first piece, or a later one.
        """
        ...

    def path(self, bind: Bind, sha256: str) -> Path | None:
        """Where the blob is on this machine; None: it has to be fetched."""
        ...

    async def aclose(self) -> None: ...


class StoredFiles:
    """`VersionFiles` from a store that this node can read."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    def get(self, bind: Bind, sha256: str) -> AsyncIterator[bytes]:
        return self._blobs.get(bind.tenant, sha256)

    def path(self, bind: Bind, sha256: str) -> Path | None:
        return self._blobs.path(bind.tenant, sha256) if isinstance(self._blobs, FolderBlobs) else None

    async def aclose(self) -> None:
        await self._blobs.aclose()


class Asker(Protocol):
    async def request(self, subject: str, message: Message, timeout: float) -> object:
        """The reply; raises BusError."""
        ...


class LinkedFiles:
    """`VersionFiles` for a node without access to the store: a gateway gives a link to each blob."""

    def __init__(self, bus: Asker, *, region: str, node: str) -> None:
        self._bus = bus
        self._subject = subjects.blobs(region, node)
        self._client = HttpClient(connections=AT_ONCE, timeout=TIMEOUTS)

    async def get(self, bind: Bind, sha256: str) -> AsyncIterator[bytes]:
        url, has_begun = await self._link(bind, sha256), False
        for tries_left in reversed(range(TRIES)):
            try:
                async for piece in self._read(url, sha256):
                    has_begun = True
                    yield piece
            except BlobsDown:
                if has_begun or not tries_left:
                    raise
                await asyncio.sleep(PAUSE_S)
            else:
                return

    def path(self, bind: Bind, sha256: str) -> Path | None:  # noqa: ARG002
        return None

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _read(self, url: str, sha256: str) -> AsyncIterator[bytes]:
        try:
            client = await self._client.get()
        except NoHttpClient as error:
            raise BlobsDown(f"The store of blobs cannot be asked: {error}.") from error
        import httpx

        try:
            async with client.stream("GET", url) as response:
                if response.status_code == httpx.codes.NOT_FOUND:
                    raise BlobMissing(f"There is no blob {sha256}.")
                if response.status_code != httpx.codes.OK:
                    raise BlobsDown(f"The store of blobs answered {response.status_code}.")
                async for piece in response.aiter_raw(CHUNK):
                    yield piece
        except httpx.HTTPError as error:
            raise BlobsDown(f"The store of blobs cannot be reached: {type(error).__name__} {error}.") from error

    async def _link(self, bind: Bind, sha256: str) -> str:
        wanted, why = BlobWanted(container=bind.container, sha256=sha256), ""
        for _ in range(ASKS):
            try:
                answer = await self._bus.request(self._subject, wanted, ASK_S)
            except NoResponders:
                why = "no gateway is there"
            except BusError as error:
                why = str(error)
            else:
                if isinstance(answer, BlobLink) and answer.url:
                    return answer.url
                why = answer.reason if isinstance(answer, BlobLink) else "no answer"
                if why in ("missing", "not_its"):
                    raise BlobMissing(f"There is no blob {sha256} of {bind.version}.")
                if why not in AGAIN:
                    break
            await asyncio.sleep(PAUSE_S)
        if why == "no_links":
            raise NoBlobStore("The gateways' store of blobs is a folder: start this agent with the same --blob-url.")
        raise BlobsDown(f"No gateway gave a link to blob {sha256}: {why}.")
