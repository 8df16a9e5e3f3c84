"""The ASGI application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.http.calls.call_endpoint import CallEndpoint
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.http.inference.front_operations import FIXED, INFER
from pilotlight_gateway.http.inference.other_paths import PATHS as OTHER_PATHS
from pilotlight_gateway.http.inference.other_paths import OtherPaths
from pilotlight_gateway.http.protocol.api_operations import BoundOperation, Operation
from pilotlight_gateway.http.protocol.http_exchange import Edge, OpenRequests
from pilotlight_gateway.http.protocol.openapi import document
from pilotlight_gateway.http.routes import CALL_OPERATION, OPERATIONS
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.tenancy.auth import Authenticator
from pilotlight_gateway.traces.access_log import AccessLog

G = TypeVar("G")


class ServedOperation(Protocol):
    """An operation as an application that serves it."""

    @property
    def operation(self) -> Operation[Any]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def create_app(
    calls: CallEndpoint,
    operations: Iterable[ServedOperation],
    *,
    limits: CallLimits,
    requests: OpenRequests,
    recorder: CallRecorder,
    clock: Callable[[], float],
    access: AccessLog,
) -> Edge:
    """The whole API: `calls` serves the call operation. `clock`: monotonic seconds."""
    paths: dict[str, dict[str, ASGIApp]] = {CALL_OPERATION.path: {CALL_OPERATION.method: calls}}
    for bound in operations:
        paths.setdefault(bound.operation.route, {})[bound.operation.method] = bound
    routes = [Route(path, _ByMethod(found), methods=list(found)) for path, found in paths.items()]
    routes += [Route(path, OtherPaths(), methods=["GET", "POST"]) for path in OTHER_PATHS]
    router = Router(routes, redirect_slashes=False)
    return Edge(
        calls, _Routes(router), release=limits.release, requests=requests, recorder=recorder, clock=clock, access=access
    )


def call_routes() -> frozenset[str]:
    """The paths whose requests are calls."""
    fronts = (CALL_OPERATION, FIXED, *INFER, *(each for each in OPERATIONS if each.is_call))
    return frozenset(each.path for each in fronts)


def bind(
    operations: Iterable[Operation[G]], services: G, authenticator: Authenticator, rates: ApiRates, audit: AuditLog
) -> Iterator[BoundOperation[G]]:
    """The operations of one group of endpoints with what it needs."""
    return (BoundOperation(operation, services, authenticator, rates, audit) for operation in operations)


def document_of(operations: Sequence[Operation[Any]] = OPERATIONS) -> bytes:
    """The OpenAPI document of these operations, as JSON."""
    return _whole_document() if operations is OPERATIONS else msgspec.json.encode(document(operations))


@cache
def _whole_document() -> bytes:
    # It is the same for all applications of a process, and takes longer to make than everything else of them.
    return msgspec.json.encode(document(OPERATIONS))


class _ByMethod:
    """All methods of one path, so that Starlette's 405 can name them."""

    def __init__(self, by_method: dict[str, ASGIApp]) -> None:
        self._by_method = by_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self._by_method[method](scope, receive, send)


class _Routes:
    """The routes without Starlette's error middleware: `Edge` has one."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # or Starlette answers what it finds nowhere by itself
        await self._router(scope, receive, send)
