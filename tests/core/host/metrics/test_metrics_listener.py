"""Metrics on a port of their own."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import httpx
import pytest

from pilotlight_core.host.metrics.metrics_listener import CONNECTIONS, HEAD_BYTES, CannotListen, answer, serving_metrics

HOST = "127.0.0.1"


def render(accept: str) -> tuple[bytes, str]:
    return b"pilotlight_nodes 1.0\n", "text/plain; version=0.0.4; charset=utf-8"


def fail(accept: str) -> tuple[bytes, str]:
    raise OSError("the ledger is away")


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


async def test_prometheus_reads_them_as_text() -> None:
    """Anew at each scrape; a probe may ask for the process itself; all else is not there."""
    port = unused_port()
    async with serving_metrics(HOST, port, render), httpx.AsyncClient(base_url=f"http://{HOST}:{port}") as client:
        scraped = await client.get("/metrics?name[]=all")
        assert (scraped.text, scraped.headers["content-type"]) == (
            "pilotlight_nodes 1.0\n", "text/plain; version=0.0.4; charset=utf-8"
        )  # fmt: skip
        head = await client.head("/metrics")
        assert (head.text, head.headers["content-length"]) == ("", "21")
        assert (await client.get("/healthz")).json() == {"status": "alive"}
        assert (await client.get("/v1/apps")).status_code == 404
        refused = await client.post("/metrics")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_they_are_served_on_their_port_alone_while_the_block_lasts() -> None:
    """Without a port nowhere; a port that is in use is an error."""
    port = unused_port()
    async with serving_metrics(HOST, port, render), httpx.AsyncClient() as client:
        assert (await client.get(f"http://{HOST}:{port}/metrics")).status_code == 200
        with pytest.raises(CannotListen, match=f"--metrics-port {port} of {HOST}: .*in use"):
            async with serving_metrics(HOST, port, render):
                pass
    async with serving_metrics(HOST, 0, render), httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{HOST}:{port}/metrics")


async def test_a_source_that_fails_is_an_answer_of_its_own() -> None:
    """Prometheus sees that the scrape failed, and the process goes on."""
    assert (answer(b"GET /metrics HTTP/1.1\r\n\r\n", fail)).startswith(b"HTTP/1.1 500 ")
    assert (answer(b"GET /healthz HTTP/1.1\r\n\r\n", fail)).startswith(b"HTTP/1.1 200 ")


async def test_who_sends_too_much_gets_nothing() -> None:
    """Its connection ends; others are answered."""
    port = unused_port()
    async with serving_metrics(HOST, port, render), httpx.AsyncClient() as client:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 2 * HEAD_BYTES)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        await closed(writer)
        assert (await client.get(f"http://{HOST}:{port}/metrics")).status_code == 200


async def test_who_only_holds_connections_gets_no_more_than_there_are() -> None:
    """One more is closed at once, and the block ends without theirs."""
    port = unused_port()
    async with serving_metrics(HOST, port, render):
        idle = [await asyncio.open_connection(HOST, port) for _ in range(CONNECTIONS + 1)]
        reads = {asyncio.ensure_future(reader.read(1)) for reader, _ in idle}
        refused, others = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
        assert len(refused) == 1
    await asyncio.wait(others)
    for read in reads:
        read.exception()
    for _, writer in idle:
        await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
