"""The ASGI application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from pilotlight_gateway.http.edge import Edge
from pilotlight_gateway.http.endpoints.calls import CallEndpoint
from pilotlight_gateway.http.endpoints.health import gauges_of
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.http.protocol.openapi import document
from pilotlight_gateway.http.protocol.operations import Operation
from pilotlight_gateway.http.routes import OPERATIONS


@dataclass(frozen=True, kw_only=True)
class Application:
    """What requests find under `scope["app"]`."""

    services: HttpServices
    openapi: bytes


def create_app(services: HttpServices, operations: Sequence[Operation] = OPERATIONS) -> ASGIApp:
    """The whole API over `services`. Whoever makes the services opens and closes them."""
    calls = CallEndpoint(services)
    paths: dict[str, dict[str, ASGIApp]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = calls if operation.endpoint is None else operation
    routes = [Route(path, _ByMethod(found), methods=list(found)) for path, found in paths.items()]
    application = Application(services=services, openapi=document_of(operations))
    services.metrics.gauges.append(lambda: gauges_of(services))
    return Edge(services, calls, _Within(application, Router(routes, redirect_slashes=False)))


def document_of(operations: Sequence[Operation]) -> bytes:
    """The OpenAPI document of these operations, as JSON."""
    return _whole_document() if operations is OPERATIONS else msgspec.json.encode(document(operations))


@cache
def _whole_document() -> bytes:
    # It is the same for all applications of a process, and takes longer to make than everything else of them.
    return msgspec.json.encode(document(OPERATIONS))


class _ByMethod:
    """One path: Starlette sees all its methods at once, so that 405 can name them."""

    def __init__(self, by_method: dict[str, ASGIApp]) -> None:
        self._by_method = by_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._by_method[method](scope, receive, send)


class _Within:
    """Gives the routes their application, without Starlette's error middleware: the edge has one."""

    def __init__(self, application: Application, router: Router) -> None:
        self._application = application
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self._application
        await self._router(scope, receive, send)
