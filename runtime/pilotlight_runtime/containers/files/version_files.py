"""The blobs of versions that are bound here: from a store that this node can read, or over links.

For a sealed blob a gateway gives the key that opens it alone, sealed to this question; so a node that can read all of
a store still reads no more than what it was told to run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pilotlight_core.bus import BusError, NoResponders
from pilotlight_core.host.blobs import BlobBackend, BlobMissing, BlobsDown, FolderBlobs, NoBlobStore
from pilotlight_core.host.blobs.blob_sealing import OpenedSource, opened
from pilotlight_core.host.blobs.whole_reads import BlobSource
from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_core.host.sealed_boxes import BoxReader, CannotOpen
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted, blob_key_context
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


class BlobWriter(Protocol):
    """Takes the content of one blob. Methods run in threads, one at a time, and raise where it is not to be had."""

    def write_all(self, source: BlobSource) -> None:
        """All of it; what was taken before does not count."""
        ...

    def write(self, piece: bytes) -> None:
        """The next piece."""
        ...


class VersionFiles(Protocol):
    def get(self, bind: Bind, sha256: str) -> AsyncIterator[bytes]:
        """A blob of the version that `bind` names, in pieces of at most 1 MiB.

        Raises:
            BlobMissing, BlobsDown: with the first piece, or a later one.
        """
        ...

    async def copy(self, bind: Bind, sha256: str, writer: BlobWriter) -> None:
        """Give a blob's content to `writer`, in as few steps as the way to it allows.

        Raises:
            BlobMissing, BlobsDown; what `writer` raises.
        """
        ...

    def path(self, bind: Bind, sha256: str) -> Path | None:
        """Where the blob is on this machine; None: it has to be fetched."""
        ...

    async def aclose(self) -> None: ...


class Asker(Protocol):
    async def request(self, subject: str, message: Message, timeout: float) -> object:
        """The reply; raises BusError."""
        ...


class GivenBlob(NamedTuple):
    """Where a blob is, and what opens it."""

    url: str
    name: str
    key: bytes
    """Empty: it is stored in clear."""


class BlobQuestions:
    """Asks gateways for blobs of what is bound here."""

    def __init__(self, bus: Asker, *, region: str, node: str) -> None:
        self._bus = bus
        self._subject = subjects.blobs(region, node)

    async def ask(self, bind: Bind, sha256: str) -> GivenBlob:
        """
        Raises:
            BlobMissing, BlobsDown. NoBlobStore: the store gives no links.
        """
        reader, why = BoxReader(), ""
        wanted = BlobWanted(container=bind.container, sha256=sha256, public_key=reader.public)
        for _ in range(ASKS):
            try:
                answer = await self._bus.request(self._subject, wanted, ASK_S)
            except NoResponders:
                why = "no gateway is there"
            except BusError as error:
                why = str(error)
            else:
                if isinstance(answer, BlobLink) and (answer.url or answer.sealed_key):
                    return _given(answer, reader, bind.container, sha256)
                why = answer.reason if isinstance(answer, BlobLink) else "no answer"
                if why in ("missing", "not_its"):
                    raise BlobMissing(f"There is no blob {sha256} of {bind.version}.")
                if why not in AGAIN:
                    break
            await asyncio.sleep(PAUSE_S)
        if why == "no_links":
            raise NoBlobStore("The gateways' store of blobs is a folder: start this agent with the same --blob-url.")
        raise BlobsDown(f"No gateway gave a link to blob {sha256}: {why}.")


def _given(answer: BlobLink, reader: BoxReader, container: str, sha256: str) -> GivenBlob:
    if not answer.sealed_key:
        return GivenBlob(answer.url, "", b"")
    try:
        key = reader.open(answer.sealed_key, blob_key_context(container, sha256))
    except CannotOpen:
        raise BlobsDown(f"The key of blob {sha256} cannot be read.") from None
    return GivenBlob(answer.url, answer.name, key)


class StoredFiles:
    """`VersionFiles` from a store that this node can read; gateways give the keys of sealed blobs there."""

    def __init__(self, blobs: BlobBackend, gateways: BlobQuestions) -> None:
        self._blobs = blobs
        self._gateways = gateways

    async def get(self, bind: Bind, sha256: str) -> AsyncIterator[bytes]:
        has_begun = False
        try:
            async for piece in self._blobs.get(bind.tenant, sha256):
                has_begun = True
                yield piece
        except BlobMissing:
            if has_begun:
                raise
        else:
            return
        given = await self._sealed(bind, sha256)
        async for piece in opened(given.key, bind.tenant, sha256, self._blobs.get(bind.tenant, given.name)):
            yield piece

    async def copy(self, bind: Bind, sha256: str, writer: BlobWriter) -> None:
        with suppress(BlobMissing):
            await self._blobs.read_whole(bind.tenant, sha256, writer.write_all)
            return
        given = await self._sealed(bind, sha256)

        def write(stored: BlobSource) -> None:
            writer.write_all(OpenedSource(given.key, bind.tenant, sha256, stored))

        await self._blobs.read_whole(bind.tenant, given.name, write)

    def path(self, bind: Bind, sha256: str) -> Path | None:
        path = self._blobs.path(bind.tenant, sha256) if isinstance(self._blobs, FolderBlobs) else None
        return path if path is not None and path.exists() else None

    async def aclose(self) -> None:
        await self._blobs.aclose()

    async def _sealed(self, bind: Bind, sha256: str) -> GivenBlob:
        missing = BlobMissing(f"There is no blob {sha256} of {bind.version}.")
        try:
            given = await self._gateways.ask(bind, sha256)
        except NoBlobStore:  # it is stored in clear, if at all
            raise missing from None
        if not given.key:
            raise missing
        return given


class LinkedFiles:
    """`VersionFiles` for a node without access to the store: a gateway gives a link to each blob."""

    def __init__(self, gateways: BlobQuestions) -> None:
        self._gateways = gateways
        self._client = HttpClient(connections=AT_ONCE, timeout=TIMEOUTS)

    async def get(self, bind: Bind, sha256: str) -> AsyncIterator[bytes]:
        given, has_begun, asked_again = await self._gateways.ask(bind, sha256), False, False
        for tries_left in reversed(range(TRIES)):
            read = self._read(given.url, sha256)
            try:
                async for piece in opened(given.key, bind.tenant, sha256, read) if given.key else read:
                    has_begun = True
                    yield piece
            except BlobMissing:
                # It may have been sealed since, and be there under its other name.
                if has_begun or asked_again:
                    raise
                given, asked_again = await self._gateways.ask(bind, sha256), True
            except BlobsDown:
                if has_begun or not tries_left:
                    raise
                await asyncio.sleep(PAUSE_S)
            else:
                return

    async def copy(self, bind: Bind, sha256: str, writer: BlobWriter) -> None:
        pieces: Any = self.get(bind, sha256)
        async with aclosing(pieces):
            async for piece in pieces:
                await asyncio.to_thread(writer.write, piece)

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
