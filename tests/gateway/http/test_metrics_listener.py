"""Metrics on a port of their own."""

from __future__ import annotations

import httpx
import pytest

from pilotlight_gateway.http.metrics_listener import metrics_app, serving_metrics
from pilotlight_gateway.http.server import listen


async def render() -> bytes:
    return b"pilotlight_nodes 1.0\n"


async def test_prometheus_reads_them_as_text() -> None:
    """Anew at each scrape; a probe may ask for the process itself."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(metrics_app(render)), base_url="http://m") as client:
        answer = await client.get("/metrics")
        assert (answer.text, answer.headers["content-type"]) == (
            "pilotlight_nodes 1.0\n", "text/plain; version=0.0.4; charset=utf-8"
        )  # fmt: skip
        assert (await client.get("/healthz")).json() == {"status": "alive"}
        assert (await client.get("/v1/apps")).status_code == 404


async def test_they_are_served_on_their_port_alone_while_the_block_lasts() -> None:
    """Without a port nowhere; a port that is in use is an error."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    async with serving_metrics("127.0.0.1", port, render), httpx.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{port}/metrics")).status_code == 200
        with pytest.raises(OSError):
            async with serving_metrics("127.0.0.1", port, render):
                pass
    async with serving_metrics("127.0.0.1", 0, render), httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://127.0.0.1:{port}/metrics")
