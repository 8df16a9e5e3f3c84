"""Files of versions: from a store that the node can read, and over links."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_core.bus import BusTimeout, NoResponders
from pilotlight_core.host.blobs import BlobChanged, BlobMissing, BlobsDown, FolderBlobs, MemoryBlobs, NoBlobStore
from pilotlight_core.host.blobs.blob_sealing import BlobKey, sealed
from pilotlight_core.host.blobs.whole_reads import BlobSource, read_pieces
from pilotlight_core.host.sealed_boxes import BoxReader, seal_box
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted, blob_key_context
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.containers.files import version_files
from pilotlight_runtime.containers.files.version_files import (
    TRIES,
    BlobQuestions,
    LinkedFiles,
    StoredFiles,
    VersionFiles,
)
from tests.builders.nodes import bind
from tests.runtime.local_files import stored_files

CONTENT = bytes(range(256)) * 9_000
SHA = "a" * 64
BIND = bind("c1", tenant="acme")


class Gateways:
    """Answers one question after the other; the last answer stays."""

    def __init__(self, *answers: BlobLink | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Message]] = []

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        self.asked.append((subject, message))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_files, "PAUSE_S", 0.0)


async def read(files: VersionFiles) -> bytes:
    return b"".join([piece async for piece in files.get(BIND, SHA)])


@asynccontextmanager
async def served(status: str, content: bytes, *, busy: int = 0) -> AsyncIterator[str]:
    """A server that answers every request so, after `busy` ones that it turns away; its URL."""
    turned_away = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal turned_away
        await reader.readuntil(b"\r\n\r\n")
        if turned_away < busy:
            turned_away += 1
            writer.write(b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        length = max(len(content), len(CONTENT))
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n".encode())
        writer.write(content)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield "http://127.0.0.1:{1}/blob".format(*server.sockets[0].getsockname())


async def linked(*answers: BlobLink | Exception) -> tuple[Gateways, bytes]:
    gateways = Gateways(*answers)
    files = LinkedFiles(BlobQuestions(gateways, region="eu", node="n1"))
    try:
        return gateways, await read(files)
    finally:
        await files.aclose()


async def test_a_linked_file_is_read(anyio_backend: str) -> None:
    """The gateway is asked for one blob of one container, until it has heard of the binding."""
    async with served("200 OK", CONTENT) as url:
        gateways, content = await linked(
            BlobLink(reason="not_bound"), NoResponders("nobody"), BusTimeout("late"), BlobLink(url=url)
        )

    assert content == CONTENT
    (asked,) = {message for _, message in gateways.asked}
    assert isinstance(asked, BlobWanted)
    assert {subject for subject, _ in gateways.asked} == {"pl.eu.node.n1.blobs"}
    assert (asked.container, asked.sha256, len(gateways.asked)) == ("c1", SHA, 4)


async def test_a_store_that_is_busy_is_asked_again(anyio_backend: str) -> None:
    """A few times; then its container's start is tried again later."""
    async with served("200 OK", CONTENT, busy=TRIES - 1) as url:
        assert (await linked(BlobLink(url=url)))[1] == CONTENT
    async with served("200 OK", CONTENT, busy=TRIES) as url:
        with pytest.raises(BlobsDown, match="503"):
            await linked(BlobLink(url=url))


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (BlobLink(reason="not_its"), BlobMissing, "no blob"),
        (BlobLink(reason="missing"), BlobMissing, "no blob"),
        (BlobLink(reason="down"), BlobsDown, "down"),
        (BlobLink(reason="not_bound"), BlobsDown, "not_bound"),
        (BlobLink(reason="no_links"), NoBlobStore, "--blob-url"),
        (NoResponders("nobody"), BlobsDown, "no gateway is there"),
    ],
)
async def test_a_file_without_a_link_is_an_error(
    answer: BlobLink | Exception, error: type[Exception], said: str, anyio_backend: str
) -> None:
    """Which says whether another try may help."""
    with pytest.raises(error, match=said):
        await linked(answer)


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        ("404 Not Found", CONTENT, BlobMissing),
        ("403 Forbidden", CONTENT, BlobsDown),
        ("200 OK", CONTENT[:-1], BlobsDown),
    ],
)
async def test_a_store_that_does_not_give_it_is_an_error(
    status: str, content: bytes, error: type[Exception], anyio_backend: str
) -> None:
    """Also in the middle."""
    async with served(status, content) as url:
        with pytest.raises(error):
            await linked(BlobLink(url=url))


async def test_a_store_that_nobody_reaches_is_down(anyio_backend: str) -> None:
    """The container is tried again later."""
    async with served("200 OK", b"") as url:
        pass
    with pytest.raises(BlobsDown):
        await linked(BlobLink(url=url))


async def test_a_store_of_ones_own_is_read_as_it_is(tmp_path: Path, anyio_backend: str) -> None:
    """A folder's files are linked in place."""
    blobs = MemoryBlobs()
    blobs.kept["acme", SHA] = CONTENT

    assert await read(stored_files(blobs)) == CONTENT
    assert stored_files(blobs).path(BIND, SHA) is None
    folder, digest = FolderBlobs(tmp_path), hashlib.sha256(CONTENT).hexdigest()
    assert stored_files(folder).path(BIND, digest) is None
    await folder.put("acme", digest, CONTENT)
    assert stored_files(folder).path(BIND, digest) == folder.path("acme", digest)


class SealingGateway:
    """Answers as gateways do of sealed blobs; `tampers` seals the key to another."""

    def __init__(self, url: str = "", *, tampers: bool = False) -> None:
        self.url, self.tampers = url, tampers

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        assert isinstance(message, BlobWanted)
        public = BoxReader().public if self.tampers else message.public_key
        box = seal_box(public, KEY.of(DIGEST), blob_key_context(message.container, message.sha256))
        return BlobLink(url=self.url, name=KEY.name(DIGEST), sealed_key=box)


KEY = BlobKey("acme", bytes(32))
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def sealed_content() -> bytes:
    return b"".join([piece async for piece in sealed(KEY.of(DIGEST), "acme", DIGEST, CONTENT)])


class Collected:
    """A `BlobWriter` that keeps what comes."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write_all(self, source: BlobSource) -> None:
        self.content.clear()
        read_pieces(source, self.content.extend)

    def write(self, piece: bytes) -> None:
        self.content.extend(piece)


async def read_sealed(files: VersionFiles) -> bytes:
    """In pieces; copied it is the same."""
    found, poured = b"".join([piece async for piece in files.get(BIND, DIGEST)]), Collected()
    await files.copy(BIND, DIGEST, poured)
    assert poured.content == found
    return found


async def test_a_sealed_file_is_opened_by_the_key_that_a_gateway_gives(tmp_path: Path, anyio_backend: str) -> None:
    """From a folder under its other name, and over a link."""
    folder, stored = FolderBlobs(tmp_path), await sealed_content()
    await folder.put("acme", KEY.name(DIGEST), stored)
    questions = BlobQuestions(SealingGateway(), region="eu", node="n1")
    assert await read_sealed(StoredFiles(folder, questions)) == CONTENT

    async with served("200 OK", stored) as url:
        files = LinkedFiles(BlobQuestions(SealingGateway(url), region="eu", node="n1"))
        assert await read_sealed(files) == CONTENT
        await files.aclose()


async def test_a_sealed_file_that_does_not_open_is_an_error(tmp_path: Path, anyio_backend: str) -> None:
    """It was changed where it lies; the key was not for this question; it is not there."""
    folder, stored = FolderBlobs(tmp_path), await sealed_content()
    questions = BlobQuestions(SealingGateway(), region="eu", node="n1")
    with pytest.raises(BlobMissing):
        await read_sealed(StoredFiles(folder, questions))
    await folder.put("acme", KEY.name(DIGEST), stored[:-1])
    with pytest.raises(BlobChanged):
        await read_sealed(StoredFiles(folder, questions))
    other = BlobQuestions(SealingGateway(tampers=True), region="eu", node="n1")
    with pytest.raises(BlobsDown, match="cannot be read"):
        await read_sealed(StoredFiles(folder, other))


async def test_a_link_that_was_overtaken_is_asked_for_again(anyio_backend: str) -> None:
    """The blob was sealed in between, and is under its other name; what is not there then is missing."""
    async with served("404 Not Found", CONTENT) as old, served("200 OK", CONTENT) as new:
        assert (await linked(BlobLink(url=old), BlobLink(url=new)))[1] == CONTENT
        with pytest.raises(BlobMissing):
            await linked(BlobLink(url=old))
