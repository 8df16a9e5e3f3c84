"""Apps: deploys, blobs, what is deployed, and what it prints."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.call_api import DeployRequest
from pilotlight_core.model.errors import BadInput, TooMuch
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, AppRecord
from pilotlight_gateway.deploys.deploy_plan import app_info
from pilotlight_gateway.deploys.function_logs import FunctionLine, LogQuery, read_lines, read_since, read_tail
from pilotlight_gateway.http.protocol.event_answers import HEADERS, EventStream, event, relay
from pilotlight_gateway.http.protocol.exchange import exchange_of
from pilotlight_gateway.http.protocol.http_services import FOLLOWERS_AT_A_TIME, UPLOADS_AT_A_TIME, HttpServices
from pilotlight_gateway.http.protocol.operations import json_answer, principal_of, read_struct, truth_of
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, pieces
from pilotlight_gateway.tenancy.name_hints import check_function, known_app

DEPLOY_BODY = BodyLimits(size=16 * 10**6)
"""Ten thousand files at 200 bytes a line, and a few megabytes of specs and schemas."""
BLOB_BODY = BodyLimits(size=MAX_BUNDLE_BYTES)
SHA256 = re.compile(r"[0-9a-f]{64}")


async def list_apps(request: Request, services: HttpServices) -> Response:
    """`GET /v1/apps`."""
    tenant = principal_of(request).tenant
    containers = services.calls.containers(tenant)
    records = sorted(services.registry.iter_apps(tenant), key=lambda record: record.app)
    return json_answer({"apps": [app_info(record, services.registry, containers) for record in records]})


async def show_app(request: Request, services: HttpServices) -> Response:
    """`GET /v1/apps/{app}`."""
    record = await _own(request, services)
    return json_answer(app_info(record, services.registry, services.calls.containers(record.tenant)))


async def show_history(request: Request, services: HttpServices) -> Response:
    """`GET /v1/apps/{app}/history`, newest last."""
    record = await _own(request, services)
    return json_answer({"app": record.app, "history": record.history})


async def stop_app(request: Request, services: HttpServices) -> Response:
    """`POST /v1/apps/{app}/stop`."""
    app = check_name(request.path_params["app"], "app")
    record = await services.deployer.stop(principal_of(request), app)
    return json_answer({"app": app, "revision": record.revision, "stopped": True})


async def deploy_app(request: Request, services: HttpServices) -> Response:
    """`POST /v1/apps/{app}/deploys`."""
    app = check_name(request.path_params["app"], "app")
    asked = await read_struct(request, services, DeployRequest, DEPLOY_BODY)
    return json_answer(await services.deployer.deploy(principal_of(request), app, asked))


async def put_blob(request: Request, services: HttpServices) -> Response:
    """`PUT /v1/blobs/{sha256}`: streamed, never held in memory."""
    sha256 = request.path_params["sha256"]
    if not SHA256.fullmatch(sha256):
        raise BadInput("sha256: expected 64 lower-case hexadecimal digits.", field="sha256")
    if services.uploads >= UPLOADS_AT_A_TIME:
        raise TooMuch(f"{UPLOADS_AT_A_TIME} uploads are under way already.", retry_after=1.0)
    services.uploads += 1
    try:
        arriving: Any = pieces(request.scope, request.receive, BLOB_BODY)
        async with aclosing(arriving):
            size = await services.blobs.put(principal_of(request).tenant, sha256, arriving)
    finally:
        services.uploads -= 1
    return json_answer({"sha256": sha256, "size": size}, status=201)


async def show_logs(request: Request, services: HttpServices) -> None:
    """`GET /v1/apps/{app}/logs`: NDJSON, or server-sent events where these are accepted."""
    query = _log_query(request)
    app = await _own(request, services)
    if query.function != "*":
        check_function(app, query.function, "function")
    as_events = "text/event-stream" in request.headers.get("accept", "")
    headers = HEADERS if as_events else [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store")]
    if services.followers >= FOLLOWERS_AT_A_TIME:
        raise TooMuch(f"{FOLLOWERS_AT_A_TIME} log readers are connected already.", retry_after=5.0)
    exchange = exchange_of(request.scope)
    stream = EventStream(exchange, headers) if as_events else EventStream(exchange, headers, keepalive=b"\n")
    lines: Any = read_lines(services.logs, query)

    async def send_all() -> None:
        async with aclosing(lines):
            async for piece in _pieces(lines, as_events=as_events):
                await stream.send(piece)

    services.followers += 1
    try:
        await relay(stream, request.receive, send_all)
    finally:
        services.followers -= 1
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
        since=read_since(asked["since"]) if "since" in asked else 0.0,
        tail=read_tail(asked["tail"]) if "tail" in asked else None,
        follow=truth_of(request, "follow"),
    )


async def _own(request: Request, services: HttpServices) -> AppRecord:
    app = check_name(request.path_params["app"], "app")
    return await known_app(services.registry, principal_of(request).tenant, app)
