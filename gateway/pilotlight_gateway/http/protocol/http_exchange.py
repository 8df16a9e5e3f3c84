"""One request and its answer, and the outermost application."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol

import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pilotlight_core.model.errors import BadInput, NotFound, PilotlightError
from pilotlight_gateway.http.protocol.drain_gate import current_task
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.tenancy.auth import NOBODY, Principal

KEY = "pilotlight"
"""Where the exchange is found in the ASGI scope."""
SERVED = "pilotlight.served"
"""Where our server puts its `ServerRequest` in the scope; other servers have none."""
CLIENT_CLOSED = 499

log = structlog.get_logger(__name__)
_prefix = f"req_{secrets.token_hex(6)}"
_numbers = count(1)


class ClientGone(Exception):
    """The client hung up before its request was whole."""


class ServerRequest(Protocol):
    """What our server offers of a request beyond ASGI."""

    loop: asyncio.AbstractEventLoop
    """The running one: looking it up takes a system call in Python 3.11."""

    def take_body(self) -> bytes | None:
        """The whole body, once; None: it has not all arrived, or the client has gone."""

    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send an answer at once; False: nothing was sent."""


class Exchange:
    """Replaces `send`: adds the request's ids to its answer, and keeps the answer's status."""

    __slots__ = (
        "_send",
        "_served",
        "admission",
        "arrived_at",
        "call_id",
        "principal",
        "request_id",
        "route",
        "status",
        "task",
        "usage",
        "version",
    )

    def __init__(self, scope: Scope, send: Send, arrived_at: float) -> None:
        self._send = send
        self._served: ServerRequest | None = scope.get(SERVED)
        self.arrived_at = arrived_at
        """Monotonic seconds."""
        self.task = current_task(self._served.loop if self._served is not None else None)
        """The one that serves the request."""
        self.request_id = f"{_prefix}{next(_numbers):07x}"
        self.principal: Principal = NOBODY
        self.call_id = ""
        self.route = ""
        """The path pattern that was matched, for metrics."""
        self.status = 0
        """0 until the answer's head is sent."""
        self.admission: Admission | None = None
        """Of a call that counts under its tenant's limits."""
        self.version = ""
        """The version id of that call."""
        self.usage: CallUsage | None = None
        """Counts its cost; None while it cannot have run."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._names()]
        await self._send(message)

    async def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a whole answer."""
        headers += ((b"content-length", b"%d" % len(body)), *self._names())
        self.status = status
        if self._served is None or not self._served.send_whole(status, headers, body):
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            await self._send({"type": "http.response.body", "body": body})

    def _names(self) -> list[tuple[bytes, bytes]]:
        names = [(b"x-request-id", self.request_id.encode())]
        if self.call_id:
            names.append((b"pilotlight-call-id", self.call_id.encode()))
        if self.admission is not None:
            names += self.admission.headers()
        return names


def exchange_of(scope: Scope) -> Exchange:
    """The exchange that a request belongs to."""
    found: Any = scope[KEY]
    return found  # type: ignore[no-any-return]


def header(scope: Scope, name: bytes) -> bytes:
    """The first value of a header, b"" if it is absent. `name` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return b""


class CallApp(Protocol):
    """The application that takes calls."""

    def serves(self, scope: Scope) -> bool:
        """Whether a request is a call."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""
        ...


class Edge:
    """Sends calls straight to their endpoint and everything else to the routes."""

    def __init__(
        self,
        calls: CallApp,
        routes: ASGIApp,
        *,
        release: Callable[[Exchange], None],
        metrics: GatewayMetrics,
        clock: Callable[[], float],
    ) -> None:
        """`release` gets each exchange that has ended; `clock`: monotonic seconds."""
        self._calls = calls
        self._routes = routes
        self._release = release
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._routes(scope, receive, send)
            return
        exchange = scope[KEY] = Exchange(scope, send, self._clock())
        try:
            if self._calls.serves(scope):
                await self._calls(scope, receive, exchange)
            else:
                await self._routes(scope, receive, exchange)
        except PilotlightError as error:
            await self._answer_error(exchange, error)
        except HTTPException as error:
            await self._answer_error(exchange, _of_starlette(error, scope))
        except ClientGone:
            exchange.status = exchange.status or CLIENT_CLOSED
        except Exception as error:
            log.exception("a request failed unexpectedly", request_id=exchange.request_id, route=exchange.route)
            if exchange.status:
                raise  # the head is out: only a broken connection still tells the client
            await self._answer_error(exchange, PilotlightError(code="internal"), cause=error)
        finally:
            self._release(exchange)
            self._metrics.requests[exchange.route, exchange.status] += 1
            # Both know the server's request, which knows the scope: cycles, which would wait for the garbage collector.
            del scope[KEY]
            scope.pop(SERVED, None)

    async def _answer_error(self, exchange: Exchange, error: PilotlightError, cause: Exception | None = None) -> None:
        if error.meaning.status >= 500 and cause is None:
            # Refusals are counted. They come by the thousand when there is least time to write each of them down.
            write = log.debug if error.meaning.status == 503 else log.info
            write("a request failed", request_id=exchange.request_id, code=error.wire_code, route=exchange.route)
        if exchange.status:
            log.warning("an answer broke off", request_id=exchange.request_id, code=error.wire_code)
            raise error
        problem = problem_of(error, exchange.request_id)
        await exchange.answer(problem.status, problem.headers, problem.encode())


def _of_starlette(error: HTTPException, scope: Scope) -> PilotlightError:
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        return BadInput(f"{scope['path']} does not take {scope['method']}.", code="method_not_allowed", allow=allow)
    if error.status_code == 404:
        return NotFound(f"There is nothing at {scope['path'][:200]}.")
    return BadInput(str(error.detail), code="bad_request")
