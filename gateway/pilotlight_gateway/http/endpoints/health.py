"""How the gateway is, for those who run it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import Metric
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.http.protocol.operations import json_answer
from pilotlight_gateway.metrics.gateway_metrics import gauge, gauge_by
from pilotlight_gateway.metrics.home_metrics import home_gauges

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


async def healthz(_request: Request, _services: HttpServices) -> Response:
    """`GET /healthz`: the process is alive."""
    return json_answer({"status": "alive"})


async def readyz(_request: Request, services: HttpServices) -> Response:
    """`GET /readyz`: calls would be taken now."""
    reason = why_not_ready(services)
    if reason:
        raise Unavailable(f"Not ready: {reason}.", code="draining" if services.gate.draining else "starting")
    return json_answer({"status": "ready"})


def why_not_ready(services: HttpServices) -> str:
    """The first thing that is missing; "" if nothing is."""
    checks = (
        (not services.gate.draining, "shutting down"),
        (services.bus_connected(), "the bus is not connected"),
        (services.registry.fresh(services.clock()), "the registry is not up to date"),
    )
    return next((reason for ok, reason in checks if not ok), "") or services.calls.ready()


async def show_metrics(_request: Request, services: HttpServices) -> Response:
    """`GET /metrics`."""
    services.metrics.folded = await asyncio.to_thread(services.ledger.results)
    return Response(services.metrics.exposition(), media_type=PROMETHEUS)


def gauges_of(services: HttpServices) -> Iterator[Metric]:
    """What others know, asked at each scrape."""
    calls = services.calls.statistics()
    yield gauge("pilotlight_queue_depth", "Calls that wait for a container.", calls.queued)
    yield gauge("pilotlight_queue_oldest_seconds", "Age of the oldest waiting call.", calls.oldest_ms / 1000)
    yield gauge("pilotlight_calls_running", "Calls in containers.", calls.running)
    yield gauge_by("pilotlight_containers", "Containers by state.", "state", calls.containers)
    yield gauge("pilotlight_nodes", "Nodes that report.", calls.nodes)
    yield gauge("pilotlight_shards", "Shards that this gateway is the home of.", calls.homes)
    yield gauge("pilotlight_blanks", "Blanks that are ready.", calls.blanks)
    yield gauge("pilotlight_requests_inside", "Calls whose caller waits here.", len(services.gate))
    yield gauge("pilotlight_body_bytes", "Bytes of bodies held.", services.budget.used)
    yield from home_gauges(calls.scheduling)
    yield gauge("pilotlight_ready", "1 when calls are taken.", 0 if why_not_ready(services) else 1)


def bus_gauges(statistics: Any) -> Iterator[Metric]:
    """The bus connection's own statistics."""
    for name in ("messages_in", "messages_out", "bytes_in", "bytes_out", "reconnects", "undecodable", "backlog"):
        text = f"The bus connection's {name.replace('_', ' ')}."
        yield gauge(f"pilotlight_bus_{name}", text, getattr(statistics, name))
    yield gauge("pilotlight_bus_connected", "1 while the bus is connected.", int(statistics.connected))
