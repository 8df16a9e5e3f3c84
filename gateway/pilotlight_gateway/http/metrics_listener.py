"""Metrics on a port of their own: they tell of the whole platform, and need no key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_gateway.http.server import listen, make_server


def metrics_app(render: Callable[[], Awaitable[bytes]]) -> Starlette:
    """`GET /metrics` for Prometheus, with what `render` returns, and `GET /healthz`."""

    async def metrics(_request: Request) -> Response:
        return Response(await render(), media_type=ProcessMetrics.content_type)

    async def healthz(_request: Request) -> Response:
        return Response('{"status":"alive"}', media_type="application/json")

    return Starlette(routes=[Route("/metrics", metrics), Route("/healthz", healthz)])


@asynccontextmanager
async def serving_metrics(host: str, port: int, render: Callable[[], Awaitable[bytes]]) -> AsyncIterator[None]:
    """Serve metrics within the block; port 0: not at all.

    Raises:
        OSError: the port is in use.
    """
    if not port:
        yield
        return
    server = make_server(metrics_app(render))
    with listen(host, port) as socket:
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[socket]))
            try:
                yield
            finally:
                server.stop()
