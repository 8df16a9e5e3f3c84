"""The output of an app's functions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from pilotlight_core.model.ids import check_name
from pilotlight_gateway.deploys.function_logs import (
    FunctionLine,
    LogQuery,
    LogSource,
    read_lines,
    read_since,
    read_tail,
)
from pilotlight_gateway.http.protocol.api_operations import principal_of, truth_of
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, relay
from pilotlight_gateway.http.protocol.http_exchange import exchange_of
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.tenancy.name_hints import check_function, known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LONGEST_CALL_ID = 200


@dataclass(frozen=True, kw_only=True)
class LogServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    logs: LogSource
    followers: TenantSlots


async def show_logs(request: Request, services: LogServices) -> None:
    """`GET /v1/apps/{app}/logs`: NDJSON, or server-sent events if the client accepts them."""
    query = _log_query(request)
    app = await known_app(services.registry, query.tenant, query.app)
    if query.function != "*":
        check_function(app, query.function, "function")
    as_events = "text/event-stream" in request.headers.get("accept", "")
    headers = HEADERS if as_events else [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
    exchange = exchange_of(request.scope)
    stream = EventStream(exchange, headers) if as_events else EventStream(exchange, headers, keepalive=b"\n")
    lines: Any = read_lines(services.logs, query)

    async def send_all() -> None:
        async with aclosing(lines):
            async for piece in _pieces(lines, as_events=as_events):
                await stream.send(piece)

    with services.followers.slot(query.tenant):
        await relay(stream, request.receive, send_all)
    await stream.finish()


async def _pieces(lines: AsyncIterator[FunctionLine], *, as_events: bool) -> AsyncIterator[bytes]:
    async for line in lines:
        data = msgspec.json.encode(line)
        yield event(b"line", data) if as_events else data + b"\n"


def _log_query(request: Request) -> LogQuery:
    asked = request.query_params
    function = asked.get("function")
    return LogQuery(
        tenant=principal_of(request).tenant,
        app=check_name(request.path_params["app"], "app"),
        function=check_name(function, "function") if function is not None else "*",
        call_id=asked.get("call", "")[:LONGEST_CALL_ID],
        since=read_since(asked["since"]) if "since" in asked else 0.0,
        tail=read_tail(asked["tail"]) if "tail" in asked else None,
        follow=truth_of(request, "follow"),
    )
