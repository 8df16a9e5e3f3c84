"""One request and its answer, and the outermost application."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from itertools import count
from typing import Any, Protocol, TypeVar

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pilotlight_core.model.errors import BadInput, NotFound, PilotlightError
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.protocol.drain_gate import current_task
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.peer_paths import hint_of
from pilotlight_gateway.http.protocol.problem_answers import Headers, problem_of
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.tenancy.auth import NOBODY, Principal
from pilotlight_gateway.traces.access_log import AccessLog, log_failure

KEY = "pilotlight"
"""Where the exchange is found in the ASGI scope."""
ADMISSION = "pilotlight.admission"
"""Where our server puts the `Admission` of a request that counts already."""
SERVED = "pilotlight.served"
"""Where our server puts its `ServerRequest` in the scope; other servers have none."""
HOME = b"pilotlight-home"
"""The header that says where calls of the function cross to no other gateway."""
CLIENT_CLOSED = 499
HEAD_END = b"\r\n\r\n"
LAST_HEAD_END = b"\r\nconnection: close\r\n\r\n"

log = structlog.get_logger(__name__)
_prefix = f"req_{secrets.token_hex(6)}"
_numbers = count(1)


class ClientGone(Exception):
    """The client hung up before its request was whole."""


class ServerRequest(Protocol):
    """What our server offers of a request beyond ASGI."""

    loop: asyncio.AbstractEventLoop
    """The running one: looking it up takes a system call in Python 3.11."""

    def mark_known(self) -> None:
        """The request has a valid key."""

    def take_body(self) -> bytes | None:
        """The whole body, once; None: it has not all arrived, or the client has gone."""

    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send an answer at once; False: nothing was sent."""

    def send_piece(self, piece: bytes) -> bool:
        """Send a piece of a body behind its head at once; False: the client has to read first, or there is no head."""

    @property
    def takes_pieces(self) -> bool:
        """Whether `send_piece` would send."""


class CallConnection(Protocol):
    """A connection, as a call sees it that needs no task."""

    def mark_known(self) -> None:
        """A request with a valid key has come over it."""
        ...

    def await_answer(self, call: WholeRequest) -> None:
        """The request is under way: `call` is told if the client hangs up."""
        ...

    def answer(self, status: int, lines: bytes, body: bytes) -> bool:
        """Send a whole answer with these `header_lines`; False: the client does not read, and nothing was sent."""
        ...

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on in a task of the server's."""
        ...

    def slow_send(self) -> Send:
        """Sends the answer to the request under way by ASGI messages."""
        ...

    def keep_admission(self, admission: Admission | None) -> None:
        """The request counts already, for the exchange that it will be."""
        ...


class WholeRequest(Protocol):
    """A request under way that was taken whole."""

    def client_gone(self) -> None:
        """Its client hung up."""
        ...


H = TypeVar("H")


class WholeRequests(Protocol[H]):
    """Takes requests that need no more of the server than their bytes."""

    def serves(self, url: bytes) -> bool:
        """Whether a POST of this URL may be one."""
        ...

    def read_head(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> H | None:
        """What a request's head says; None: it is no request for here."""
        ...

    def take(self, connection: CallConnection, head: H, body: bytes) -> bool:
        """Answer a request, now or later; False: it has to go through the application."""
        ...


class FailedRequest(Protocol):
    """A request, as the answer with its error sees it."""

    @property
    def request_id(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def home(self) -> bytes: ...
    @property
    def route(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def admission(self) -> Admission | None: ...
    @property
    def dialect(self) -> Dialect: ...
    @property
    def call(self) -> PreparedCall | None: ...


class OpenRequest(Protocol):
    """A request, as the end of its key sees it."""

    @property
    def principal(self) -> Principal: ...
    @property
    def revoked(self) -> PilotlightError | None: ...

    def revoke(self, error: PilotlightError) -> None:
        """End it with this error."""
        ...


def new_request_id() -> str:
    """The id of a request that is no call, or none yet."""
    return f"{_prefix}{next(_numbers):07x}"


class Exchange:
    """Replaces `send`: adds the request's ids to its answer, and keeps the answer's status."""

    __slots__ = (
        "_send", "_served", "admission", "arrived_at", "asked", "call", "call_id", "called", "dialect", "home",
        "is_sending", "pieces", "principal", "request_id", "revoked", "route", "status", "task", "usage", "version",
    )  # fmt: skip

    def __init__(self, scope: Scope, send: Send, arrived_at: float) -> None:
        self._send = send
        self._served: ServerRequest | None = scope.get(SERVED)
        self.arrived_at = arrived_at
        """Monotonic seconds."""
        self.task = current_task(self._served.loop if self._served is not None else None)
        """The one that serves the request."""
        self.request_id = new_request_id()
        self.principal: Principal = NOBODY
        self.call_id = ""
        self.called: VersionRecord | None = None
        """The version that the request calls."""
        self.call: PreparedCall | None = None
        """What it has come to."""
        self.home = b""
        """Where clients reach the home of the called function; b"" if it is here, or not known."""
        self.dialect = Dialect.NATIVE
        """In which its errors are written."""
        self.route = ""
        """The path pattern that was matched, for metrics."""
        self.status = 0
        """0 until the answer's head is sent."""
        self.pieces = 0
        """Of an answer that is sent piece by piece, how many were."""
        self.is_sending = False
        """Whether a task waits for its client to read what was sent."""
        self.admission: Admission | None = scope.get(ADMISSION)
        """Of a call that counts under its tenant's limits."""
        self.version = ""
        """The version id of that call."""
        self.usage: CallUsage | None = None
        """Counts its cost; None while it cannot have run."""
        self.asked: msgspec.Struct | None = None
        """Its body, for the audit log."""
        self.revoked: PilotlightError | None = None
        """Why its principal may no more; the task is cancelled then."""

    def note_principal(self, principal: Principal) -> None:
        """The request has a valid key: this principal's."""
        self.principal = principal
        if self._served is not None:
            self._served.mark_known()

    def revoke(self, error: PilotlightError) -> None:
        """End the request with this error: its principal may no more."""
        self.revoked = error
        self.task.cancel()

    def was_revoked(self) -> PilotlightError | None:
        """The error, if `revoke` caused the cancellation that the task has caught, which is undone; else None."""
        return self.revoked if self.revoked is not None and self.task.uncancel() == 0 else None

    def begin_call(self, call_id: str) -> None:
        """The request is a call: one id is that of both, so that what a failed request names is found in the logs."""
        self.call_id = self.request_id = call_id

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *ids_of(self)]
        await self._send(message)

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer."""
        headers = [*headers, (b"content-length", b"%d" % len(body)), *ids_of(self)]
        self.status = status
        if self._served is None or not self._served.send_whole(status, headers, body):
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            await self._send({"type": "http.response.body", "body": body})

    def send_piece(self, piece: bytes) -> bool:
        """Send a small piece behind others at once; False: nothing was sent, since the client has to read before."""
        served = self._served
        if served is None or self.is_sending or not served.send_piece(piece):
            return False
        self.pieces += 1
        return True

    @property
    def takes_pieces(self) -> bool:
        """Whether `send_piece` would send."""
        return self._served is not None and not self.is_sending and self._served.takes_pieces


def ids_of(request: FailedRequest) -> Headers:
    """The headers of every answer to a request: its ids, its function's home, and how its tenant stands."""
    names = [(b"x-request-id", request.request_id.encode())]
    if request.call_id:
        names.append((b"pilotlight-call-id", request.call_id.encode()))
    if request.home:
        names.append((HOME, request.home))
    if request.admission is not None:
        names += request.admission.headers()
        if request.dialect is Dialect.OPENAI and request.admission.tokens is None:  # else they are among those
            names += request.admission.openai_headers()
    return names


def header_lines(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Headers as they are sent, without a line break at the end.

    Raises:
        ValueError: if one would break out of its line.
    """
    lines = b"\r\n".join([name + b": " + value for name, value in headers])
    if lines.count(b"\n") != len(headers) - 1 or lines.count(b"\r") != len(headers) - 1:
        raise ValueError("a header has a line break")
    return lines


class AnswerHeads:
    """How answers begin: the status line, and the headers that all of a server have."""

    def __init__(self, status_lines: Mapping[int, bytes]) -> None:
        self._status_lines = status_lines
        self._defaults: Headers | None = None
        self._begins: dict[int, bytes] = {}
        self.are_last = False
        """Whether each answer ends its connection: the process will end."""

    def whole(self, defaults: Headers, status: int, lines: bytes, body: bytes, *, keep_alive: bool) -> bytes:
        """A whole answer; `defaults` are replaced by others each second, and not changed."""
        if defaults is not self._defaults:
            self._defaults = defaults
            self._begins.clear()
        begin = self._begins.get(status)
        if begin is None:
            own = b"".join(name + b": " + value + b"\r\n" for name, value in defaults)
            begin = self._begins[status] = self._status_lines[status] + own
        return b"".join((begin, lines, HEAD_END if keep_alive else LAST_HEAD_END, body))


def whole_refusal(error: PilotlightError, status_lines: Mapping[int, bytes]) -> bytes:
    """A whole answer, before there is a request."""
    problem = problem_of(error, "")
    body = problem.encode()
    headers = [*problem.headers, (b"connection", b"close"), (b"content-length", b"%d" % len(body))]
    return b"".join((status_lines[problem.status], header_lines(headers), HEAD_END, body))


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


def authorization(scope: Scope) -> bytes:
    """The value of the Authorization header, b"" if it is absent.

    Raises:
        BadInput: `bad_request`: there are several, and whoever is in between may have looked at another one.
    """
    found = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(found) > 1:
        raise BadInput(f"There are {len(found)} Authorization headers: send one.", code="bad_request")
    return bytes(found[0]) if found else b""


def answer_error(
    request: FailedRequest, error: PilotlightError, cause: Exception | None = None
) -> tuple[int, Headers, bytes]:
    """Status, headers and body of the answer for an error, which is logged unless its `cause` was."""
    if cause is None:
        log_failure(request, error)
    problem = problem_of(error, request.request_id, dialect=request.dialect)
    return problem.status, problem.headers, problem.encode()


class CallApp(Protocol):
    """The application that takes calls."""

    def serves(self, scope: Scope) -> bool:
        """Whether a request is a call."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""
        ...


class OpenRequests:
    """Every exchange, and every call without one, from its beginning to its end, so that those end whose key ends:
    streams may be open for hours."""

    def __init__(self) -> None:
        self._open: set[OpenRequest] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, request: OpenRequest) -> None:
        self._open.add(request)

    def remove(self, request: OpenRequest) -> None:
        self._open.discard(request)

    def end_revoked(self, why_ended: Callable[[Principal], PilotlightError | None]) -> int:
        """End the requests of principals that `why_ended` has an error for, which is their answer; how many."""
        verdicts: dict[str | Principal, PilotlightError | None] = {}
        ended = 0
        for exchange in list(self._open):
            principal = exchange.principal
            if principal is NOBODY or exchange.revoked is not None:
                continue
            # Of a key there is one principal; of who has tokens, or sessions, one for each.
            who = principal if principal.origin is not None or principal.session else principal.key_id
            if who not in verdicts:
                verdicts[who] = why_ended(principal)
            if (error := verdicts[who]) is not None:
                exchange.revoke(error)
                ended += 1
        return ended


class Edge:
    """Sends calls straight to their endpoint and everything else to the routes."""

    def __init__(
        self,
        calls: CallApp,
        routes: ASGIApp,
        *,
        release: Callable[[Exchange], None],
        requests: OpenRequests,
        recorder: CallRecorder,
        clock: Callable[[], float],
        access: AccessLog | None = None,
    ) -> None:
        """`release` gets each exchange that has ended, `requests` has the others; `clock`: monotonic seconds."""
        self._calls = calls
        self._routes = routes
        self._release = release
        self._requests = requests
        self._recorder = recorder
        self._metrics = recorder.metrics
        self._clock = clock
        self.access = access or AccessLog()
        self.whole: WholeRequests[Any] | None = None
        """Takes what needs no task."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._routes(scope, receive, send)
            return
        exchange = scope[KEY] = Exchange(scope, send, self._clock())
        app: ASGIApp = self._calls if self._calls.serves(scope) else self._routes
        try:
            await self.serve(exchange, app(scope, receive, exchange), scope)
        finally:
            # Both know the server's request, which knows the scope: cycles, which would wait for the garbage collector.
            del scope[KEY]
            scope.pop(SERVED, None)

    async def serve(self, exchange: Exchange, work: Awaitable[None], scope: Scope | None = None) -> None:
        """Await the work that answers an exchange, and answer what it raises."""
        self._requests.add(exchange)
        failed: PilotlightError | None = None
        cause: Exception | None = None
        try:
            try:
                await work
            except PilotlightError as error:
                failed = error
            except HTTPException as error:
                failed = _of_starlette(error, scope or {})
            except asyncio.CancelledError:
                if (failed := exchange.was_revoked()) is None:
                    self._recorder.client_gone(exchange)
                    raise
            except ClientGone:
                exchange.status = exchange.status or CLIENT_CLOSED
                self._recorder.client_gone(exchange)
            except Exception as error:
                log.exception("a request failed unexpectedly", request_id=exchange.request_id, route=exchange.route)
                if exchange.status:
                    raise  # the head is out: only a broken connection still tells the client
                failed, cause = PilotlightError(code="internal"), error
            if failed is not None:
                if exchange.called is not None:
                    self._recorder.request_failed(failed, exchange)
                await self._answer_error(exchange, failed, cause)
        finally:
            failed = cause = None  # they know this frame: a cycle would wait for the garbage collector
            self._requests.remove(exchange)
            self._release(exchange)
            self._metrics.requests[exchange.route, exchange.status] += 1
            if self.access.logs_all and exchange.status < 400:
                self.access.ended(exchange)
            self._metrics.break_glass += exchange.principal.break_glass

    async def _answer_error(self, exchange: Exchange, error: PilotlightError, cause: Exception | None = None) -> None:
        answer = answer_error(exchange, error, cause)
        self.access.failed(exchange, error, exchange.status or answer[0])
        if exchange.status:
            log.warning("an answer broke off", request_id=exchange.request_id, code=error.wire_code)
            raise error
        await exchange.answer(*answer)


def _of_starlette(error: HTTPException, scope: Scope) -> PilotlightError:
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        return BadInput(f"{scope['path']} does not take {scope['method']}.", code="method_not_allowed", allow=allow)
    if error.status_code == 404:
        path, hint = scope["path"], hint_of(scope["path"])
        return NotFound(f"There is nothing at {path[:200]}{': ' if hint else ''}{hint}.")
    return BadInput(str(error.detail), code="bad_request")
