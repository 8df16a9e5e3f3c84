"""An issuer is asked with bounds: whatever it answers, nothing is followed, and little is read."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilotlight_gateway.oidc.jwks_source import (
    MOST_BYTES,
    WELL_KNOWN,
    HttpJwksSource,
    IssuerSilent,
    MemoryJwksSource,
    discover_jwks_url,
)
from tests.builders.certificates import a_server, an_authority

URL = "https://login.example.com"


class RawServer:
    """Answers each path with bytes of a test's choice; notes what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.url = ""
        self.hang = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        self.asked.append(path)
        writer.write(self.answers.get(path, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"))
        if path == "/slow":
            await self.hang.wait()
        writer.close()

    def answer(self, path: str, body: bytes, *headers: str, status: str = "200 OK") -> str:
        lines = "".join(f"{line}\r\n" for line in headers)
        self.answers[path] = f"HTTP/1.1 {status}\r\n{lines}connection: close\r\n\r\n".encode() + body
        return self.url + path


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    listening = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()[:2]
    raw.url = f"http://{host}:{port}"
    async with listening:
        yield raw
        raw.hang.set()


@pytest.fixture
async def source() -> AsyncIterator[HttpJwksSource]:
    made = HttpJwksSource()
    yield made
    await made.aclose()


async def refused(source: HttpJwksSource, url: str) -> str:
    with pytest.raises(IssuerSilent) as caught:
        await source.fetch(url)
    return str(caught.value)


async def test_a_document_is_fetched(server: RawServer, source: HttpJwksSource) -> None:
    """To its last byte."""
    largest = b" " * MOST_BYTES
    assert await source.fetch(server.answer("/keys", largest, f"content-length: {MOST_BYTES}")) == largest


async def test_nothing_is_followed(server: RawServer, source: HttpJwksSource) -> None:
    """An issuer that could redirect would choose what the platform asks in its network."""
    url = server.answer("/keys", b"", f"location: {server.url}/secret", status="302 Found")
    assert "answered 302" in await refused(source, url)
    assert server.asked == ["/keys"]


async def test_what_is_too_large_is_not_read(server: RawServer, source: HttpJwksSource) -> None:
    """With and without a length, and neither is what would only become large."""
    assert "more than" in await refused(source, server.answer("/keys", b" " * (MOST_BYTES + 1)))
    bomb = gzip.compress(b" " * 50_000_000)
    assert "compressed" in await refused(source, server.answer("/gzip", bomb, "content-encoding: gzip"))


async def test_who_is_slow_is_given_up(server: RawServer) -> None:
    source = HttpJwksSource(within_s=0.2)
    assert "within 0.2 s" in await refused(source, server.answer("/slow", b"{"))
    await source.aclose()


async def test_what_fails_is_said(server: RawServer, source: HttpJwksSource) -> None:
    """Errors of the network, of HTTP, and addresses that are none."""
    assert "answered 404" in await refused(source, f"{server.url}/none")
    assert "answered 500" in await refused(source, server.answer("/keys", b"", status="500 Oh"))
    server.answers["/odd"] = b"not http\r\n\r\n"
    assert "cannot be asked" in await refused(source, f"{server.url}/odd")
    assert "cannot be asked" in await refused(source, "http://127.0.0.1:1/keys")


async def test_an_issuer_is_who_its_certificate_says(tmp_path: Path) -> None:
    """By a public authority, or by one that the operator has named; a file that is none is said."""
    raw, authority, files = RawServer(), an_authority(tmp_path), a_server(tmp_path)
    raw.answer("/keys", b"{}", "content-length: 2")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
        for ca_file, said in ((str(authority), ""), ("", "CERTIFICATE_VERIFY_FAILED"), ("/none", "--issuer-ca-file")):
            source = HttpJwksSource(ca_file)
            if said:
                assert said in await refused(source, url)
            else:
                assert await source.fetch(url) == b"{}"
            await source.aclose()
    assert raw.asked == ["/keys"]


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/keys", "http://login.example.com/keys",
        "file:///etc/passwd", "https://user:word@login.example.com/", "//login.example.com", "https://", "", "https://[",
    ],
)  # fmt: skip
async def test_what_is_not_asked(source: HttpJwksSource, url: str) -> None:
    """Nothing but https, and http on loopback, whoever put it there."""
    assert "is not asked" in await refused(source, url)


async def test_an_issuer_says_where_its_keys_are() -> None:
    found = {"issuer": URL, "jwks_uri": f"{URL}/keys"}
    source = MemoryJwksSource(documents={URL + WELL_KNOWN: json.dumps(found).encode()})
    assert await discover_jwks_url(source, URL) == f"{URL}/keys"


@pytest.mark.parametrize(
    "document",
    [
        b"{", b"[]", b"{}", b'{"issuer":"https://other.example.com","jwks_uri":"https://login.example.com/keys"}',
        b'{"issuer":"https://login.example.com"}', b'{"issuer":"https://login.example.com","jwks_uri":7}',
        b'{"issuer":"https://login.example.com","jwks_uri":"http://169.254.169.254/"}',
        b'{"issuer":"https://login.example.com","jwks_uri":"http://127.0.0.1:8222/varz"}',
        b'{"issuer":"https://login.example.com/","jwks_uri":"https://login.example.com/keys"}',
    ],
)  # fmt: skip
async def test_what_an_issuer_may_not_say(document: bytes) -> None:
    """That it is another one, or that its keys are where nothing is asked."""
    with pytest.raises(IssuerSilent):
        await discover_jwks_url(MemoryJwksSource(documents={URL + WELL_KNOWN: document}), URL)
