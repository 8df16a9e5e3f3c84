"""Events of a gateway, as data; refusals in its words; nothing without bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.gateway_streams import LINE_BYTES, GatewayStreams, split_lines

HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n"


@asynccontextmanager
async def sending(*pieces: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that sends these to everybody, and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def read_all(*urls: str) -> list[bytes]:
    streams = GatewayStreams(urls)
    try:
        return [data async for data in streams.events("/v1/events?limit=2", "pl_session_t")]
    finally:
        await streams.aclose()


async def test_the_data_of_events_comes_and_nothing_else() -> None:
    """With the viewer's token."""
    async with sending(HEAD, b'id: 1\nevent: line\ndata: {"a"', b":1}\n\n: keepalive\n\nevent: x\ndata: 2\n\n") as (
        url,
        asked,
    ):
        assert await read_all(url) == [b'{"a":1}', b"2"]
    assert b"authorization: Bearer pl_session_t\r\n" in asked[0]
    assert b"accept: text/event-stream\r\n" in asked[0]


async def test_a_refusal_is_the_gateways() -> None:
    """And where none answers, that is said; the next one is asked then."""
    body = b'{"code": "overloaded", "detail": "8 readers of logs already."}'
    head = b"HTTP/1.1 429 Too Many\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with sending(head + body) as (url, _):
        with pytest.raises(ApiProblem, match="8 readers") as refused:
            await read_all(url)
        assert refused.value.status == 429
        streams = GatewayStreams(["http://127.0.0.1:9", url])
        for text in ("No gateway answers", "8 readers"):
            with pytest.raises(ApiProblem, match=text):
                await anext(streams.events("/v1/events", "t"))
        await streams.aclose()


async def test_a_line_has_a_bound() -> None:
    """Longer than any event is nothing that a gateway sends."""

    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * LINE_BYTES

    with pytest.raises(ApiProblem, match="longer"):
        async for _ in split_lines(pieces()):
            pass
