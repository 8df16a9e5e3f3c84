"""The HTTP server: uvicorn with bounds on what a connection may do.

uvicorn's httptools protocol does not bound request heads: a client could send headers for ever, or a byte a minute.
Bodies are bounded where they are read (`request_bodies`). Who may hold connections is decided in
`limits/connections.py`: a listener has a `ConnectionBook`.

Calls that are there whole need no task (`http_exchange.WholeRequests`), a whole answer is one write, and an idle
connection has one timer for all its rests.

No other module but `link_upgrades` touches uvicorn's internals. `BoundedProtocol` overrides the parser's callbacks,
`connection_made`, `connection_lost`, `data_received`, `on_response_complete`, `timeout_keep_alive_handler` and
`_unset_keepalive_if_required` of `HttpToolsProtocol`; it calls `_start_asgi_task` and reads its state and the keep-
alive timer. `UvicornRequest` replaces `receive` and `send` of `RequestResponseCycle` for whole answers, by its state
(`body` and the like). `test_uvicorn_internals.py` fails on a release that moves any of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, cast

import structlog
from starlette.types import ASGIApp, Send
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.http.protocol.browser_sessions import may_be_of_strange_page
from pilotlight_gateway.http.protocol.http_exchange import (
    ADMISSION,
    HEAD_END,
    SERVED,
    AnswerHeads,
    Edge,
    WholeRequest,
    header_lines,
    whole_refusal,
)  # fmt: skip
from pilotlight_gateway.http.protocol.known_heads import KnownHeads
from pilotlight_gateway.http.protocol.whole_cycle import WholeCycle
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.http.tls_listener import TlsListener
from pilotlight_gateway.limits.connections import ConnectionBook, ConnectionBounds, idlest
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.tenancy.client_certificates import ClientCertificate, certificate_of

log = structlog.get_logger(__name__)

HEAD_BYTES = 64 * 1024
"""One read from the socket may exceed it."""
PIPELINED = 32
"""Requests that may wait on a connection for the answer to an earlier one."""
HEAD_SECONDS, LINGER_SECONDS = 10.0, 2.0
"""The second: how long a body is still read, and thrown away, after its request was answered: a client that sends all
before it reads would otherwise see a broken connection. Also how long an ended one may take to read its last answer."""
KEEP_ALIVE_SECONDS = 75
SHORTEST_LOOK_S = 0.01
"""The shortest rest that is waited for: the loop's clock has whole milliseconds."""
HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection, within the bounds above."""

    head_seconds = HEAD_SECONDS
    linger_seconds = LINGER_SECONDS

    def __init__(
        self, book: ConnectionBook, heads: AnswerHeads, whole: KnownHeads | None = None, **uvicorns: Any
    ) -> None:
        super().__init__(**uvicorns)
        self._book = book
        self.answer_heads = heads
        self._whole = whole
        """Takes requests that are here whole; None: all are the application's."""
        self._plain: Any = None
        """The head of the present request, if it may be one of those; None: it is the application's."""
        self._plain_body = b""
        self._certificate: ClientCertificate | None = None
        self._read: bytes | None = None
        """What was read last, if it began with a request."""
        self._admission: Admission | None = None
        self._declined = False
        """Whether the present request must be the application's."""
        self._under_way: WholeRequest | None = None
        self._whole_cycle = WholeCycle()
        self._source: str | None = None
        """What `book` counts it by; None: it is not counted."""
        self.known = False
        """Whether a request with a valid key has come over it."""
        self._end_timer: asyncio.TimerHandle | None = None
        """Ends it if it does not become known; once it was ended, aborts it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        """When it was opened or, later, had last answered all requests."""
        self._heading = True
        self._receiving = False
        self._expecting = False
        self._head_size = self._trailing = self._bodiless = 0
        self._timer: asyncio.TimerHandle | None = None
        self._resting = False
        """Whether all requests are answered, and nothing of another has come."""
        self._certificate = certificate_of(transport.get_extra_info("peercert"))
        if self._certificate is not None:
            self._whole = None  # heads are known by their bytes, whoever sent them
        try:
            self._source = self._admit()
        except PilotlightError as error:
            transport.write(whole_refusal(error, STATUS_LINE))
            transport.close()
            return
        self._arm(self.head_seconds)
        if (seconds := self._book.bounds.unknown_seconds) is not None:
            self._end_timer = self.loop.call_later(seconds, self.end, "no_key")

    def _admit(self) -> str:
        if self._book.may_look(now := self.loop.time()):
            idle = idlest(self._counted(), self._book.room_to_make)
            for one in idle:
                one.end("no_room")
            self._book.looked(now, found=len(idle))
        return self._book.add(self.client[0] if self.client else "")

    def _counted(self) -> Iterator[BoundedProtocol]:
        return (one for one in self.connections if isinstance(one, BoundedProtocol) and one.counted)

    @property
    def counted(self) -> bool:
        """Whether it has a place of the listener's."""
        return self._source is not None

    @property
    def idle_since(self) -> float | None:
        """As `connections.Held` has it, in the loop's time."""
        # Part of a head is no request: who never sends the rest of it must not hold its place.
        return self._idle_since if self.cycle is None or self.cycle.response_complete else None

    def mark_known(self) -> None:
        """A request with a valid key has come over it."""
        if not self.known and self._source is not None:
            self.known = True
            self._book.mark_known(self._source)
            self._stop_end_timer()

    def end(self, why: str) -> None:
        """Close it, and give its place away at once; what it has not read after `linger_seconds` is thrown away."""
        if self._source is not None:
            self._book.closed[why] += 1
            self._leave()
            self._stop_end_timer()
            self.transport.close()  # waits for the client to read, which it may never do
            self._end_timer = self.loop.call_later(self.linger_seconds, self.transport.abort)

    def _leave(self) -> None:
        if self._source is not None:
            self._book.remove(self._source, known=self.known)
            self._source = None

    def _stop_end_timer(self) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()
            self._end_timer = None

    def forget(self) -> None:
        """It is another protocol's, or over."""
        self._disarm()
        self._stop_end_timer()
        self._leave()
        self.connections.discard(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget()
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            self._whole_cycle.response_complete = True
            under_way.client_gone()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        between = self._whole is not None and not self._heading and not self._receiving and self._is_idle
        if between and self._take_known(data):
            return
        self._read = data if between else None
        # With TLS one read may give all that came while reading was paused. So what is in it beside a piece of a body,
        # which sets `_bodiless` to 0, is not counted, nor the beginning of a head after one.
        in_body = self._receiving and not self._heading
        self._bodiless += len(data)
        super().data_received(data)
        self._read = None
        if self._plain is not None:  # the rest of its body is still to come
            self._begin_exchange()
        if self._heading and not self.transport.is_closing():
            self._head_size += 0 if in_body else len(data)
            if self._head_size > HEAD_BYTES:
                self.transport.write(HEAD_TOO_LARGE)
                self.transport.close()
            elif self._timer is None:
                self._arm(self.head_seconds)
        elif self._receiving and not self.transport.is_closing():
            if self._bodiless > HEAD_BYTES:  # a trailer or a chunk's head without an end
                self.transport.close()
        elif self.cycle is not None and self.cycle.response_complete:  # an empty line, or the end of a late body
            self._rest()

    @property
    def _is_idle(self) -> bool:
        """Whether every request up to the present one was answered."""
        return self.cycle is None or self.cycle.response_complete

    def _take_known(self, data: bytes) -> bool:
        """Take what was read as a request whose head was parsed before, byte by byte the same."""
        assert self._whole is not None  # noqa: S101
        end = data.find(HEAD_END) + len(HEAD_END)
        known = self._whole.known.get(data[:end])
        if known is None or len(data) - end != known.length or self.transport.is_closing():
            return False
        self._resting, self._whole_cycle.keep_alive = False, True
        self._declined = not self._whole.requests.take(self, known.head, data[end:])
        return not self._declined

    def on_message_begin(self) -> None:
        self._heading = self._receiving = True
        self._head_size = self._trailing = self._bodiless = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._heading:
            # As uvicorn does, without its frame: there are several of each request.
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
            return
        self._trailing += len(name) + len(value)  # a trailer, which is never read
        if self._trailing > HEAD_BYTES:
            raise ValueError("trailers too large")

    def on_body(self, body: bytes) -> None:
        self._bodiless = 0
        if self._plain is not None:
            self._plain_body += body
        else:
            super().on_body(body)

    def on_headers_complete(self) -> None:
        self._heading = False
        self._bodiless = 0
        self._disarm()
        self._plain, self._plain_body, self._declined = self._plain_head(), b"", False
        if self._plain is None:
            self._begin_exchange()

    def _plain_head(self) -> Any:
        """The head of the present request, if it is one that may be taken whole."""
        whole, parser = self._whole, self.parser
        if whole is None or self._declined or not self._is_idle or not whole.requests.serves(self.url):
            return None
        if parser.get_method() != b"POST" or self.expect_100_continue or parser.should_upgrade():
            return None
        return whole.requests.read_head(self.url, self.headers) if parser.get_http_version() == "1.1" else None

    def _begin_exchange(self) -> None:
        """The present request is the application's, with what of its body is here."""
        self._plain, body = None, self._plain_body
        headers, url, expects = self.headers, self.url, self.expect_100_continue
        if self._certificate is not None and not may_be_of_strange_page(self.parser.get_method().decode(), headers):
            self._certificate.add_to(headers, time.time())
        HttpToolsProtocol.on_message_begin(self)
        self.headers, self.url, self.expect_100_continue = headers, url, expects
        self.scope["headers"] = headers
        if self._admission is not None:
            self.scope[ADMISSION], self._admission = self._admission, None  # type: ignore[literal-required]
        super().on_headers_complete()
        self._expecting = self.expect_100_continue
        if self.answer_heads.are_last:
            self.end_after_answer()
        if len(self.pipeline) > PIPELINED:
            raise ValueError("too many pipelined requests")
        if isinstance(self.cycle, RequestResponseCycle):
            self.scope[SERVED] = UvicornRequest(self.cycle, self)  # type: ignore[literal-required]
        if body:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._receiving = False
        self._disarm()
        if self._plain is not None:
            head, body, self._plain = self._plain, self._plain_body, None
            self._whole_cycle.keep_alive = bool(self.parser.should_keep_alive())
            if self._whole is not None and self._whole.requests.take(self, head, body):
                if self._read is not None and self._whole_cycle.keep_alive:
                    self._whole.note(self._read, head, body)
                return
            self._begin_exchange()
        super().on_message_complete()

    # -- requests that were taken whole, as `http_exchange.CallConnection` has it ----------------------------------

    def await_answer(self, call: WholeRequest) -> None:
        self._under_way = call
        self._whole_cycle.response_complete = False
        self.cycle = self._whole_cycle  # type: ignore[assignment]

    def answer(self, status: int, lines: bytes, body: bytes) -> bool:
        if self.flow.write_paused:
            return False
        cycle, self._under_way = self._whole_cycle, None
        cycle.response_complete = True
        cycle.keep_alive = cycle.keep_alive and not self.answer_heads.are_last
        defaults = self.server_state.default_headers
        self.transport.write(self.answer_heads.whole(defaults, status, lines, body, keep_alive=cycle.keep_alive))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return True

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self._task_ended)
        self.tasks.add(task)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.transport.close()  # half an answer is out, and nothing else tells the client

    def slow_send(self) -> Send:
        was, present, self._under_way = self._whole_cycle, cast("object", self.cycle), None
        cycle = RequestResponseCycle(
            scope={"type": "http", "method": "POST"},  # type: ignore[typeddict-item]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=was.keep_alive and not self.answer_heads.are_last,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        cycle.disconnected = self.transport.is_closing()
        was.response_complete = True
        if present is was:  # else a later request has come meanwhile, and waits
            self.cycle = cycle
        return cycle.send  # type: ignore[return-value]

    def end_after_answer(self) -> None:
        """End with the answer to the present request, if there is one."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False

    def keep_admission(self, admission: Admission | None) -> None:
        self._admission = admission

    def on_response_complete(self) -> None:
        # As uvicorn does, but that reading goes on only once nothing waits, and the timer.
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            if not self.pipeline:
                self.flow.resume_reading()
            return
        self._rest()
        self.flow.resume_reading()
        if self._receiving and self._expecting:
            # The client may send the body that it was not asked for, or not: the next bytes are ambiguous.
            self.transport.close()
        elif self._receiving and not self._heading and self._timer is None:
            self._arm(self.linger_seconds)

    def _rest(self) -> None:
        self._idle_since, self._resting = self.loop.time(), True
        if self.timeout_keep_alive_task is None:
            self._inspect_in(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        # Its timer runs on: setting one for each request takes longer than looking once in a while.
        self._resting = False

    def _inspect_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if not self._resting:
            return  # it is set again when there is nothing to do
        rested = self.loop.time() - self._idle_since
        if rested < self.timeout_keep_alive - SHORTEST_LOOK_S:
            self._inspect_in(self.timeout_keep_alive - rested)
        else:
            super().timeout_keep_alive_handler()

    def _arm(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class UvicornRequest:
    """The real `http_exchange.ServerRequest`."""

    __slots__ = ("_cycle", "_flow", "_heads", "_write", "loop", "mark_known")

    def __init__(self, cycle: RequestResponseCycle, connection: BoundedProtocol) -> None:
        self._cycle = cycle
        self._flow = cycle.flow
        self._write = cycle.transport.write
        self._heads = connection.answer_heads
        self.loop = connection.loop
        self.mark_known = connection.mark_known

    def take_body(self) -> bytes | None:
        """The whole body, once; None: it has not all arrived, or the client has gone."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected or cycle.response_complete:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.waiting_for_100_continue = False
        cycle.message_event.clear()  # who waits for more waits for the client to go
        cycle.flow.resume_reading()
        return body

    def send_whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send an answer in one write; False: nothing was sent, and ASGI messages are needed.

        Raises:
            ValueError: if a header would break out of its line.
        """
        cycle = self._cycle
        if cycle.flow.write_paused or cycle.response_started or cycle.scope["method"] == "HEAD":
            return False
        if cycle.disconnected:
            return True
        if cycle.waiting_for_100_continue and cycle.more_body:
            cycle.keep_alive = False
        lines = header_lines(headers)
        cycle.transport.write(
            self._heads.whole(cycle.default_headers, status, lines, body, keep_alive=cycle.keep_alive)
        )
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True

    @property
    def takes_pieces(self) -> bool:
        """Whether `send_piece` would send."""
        cycle = self._cycle
        return not cycle.flow.write_paused and bool(cycle.chunked_encoding) and not cycle.response_complete

    def send_piece(self, piece: bytes) -> bool:
        """Send a piece of a body of unknown length; False: nothing was sent, and ASGI messages are needed."""
        cycle = self._cycle
        if self._flow.write_paused or not cycle.chunked_encoding or cycle.response_complete or not piece:
            return False
        if not cycle.disconnected:
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
        return True


def make_server(
    app: ASGIApp,
    *,
    book: ConnectionBook | None = None,
    graceful_seconds: int = 2,
    protocol: Callable[..., BoundedProtocol] = BoundedProtocol,
    tls: TlsListener | None = None,
) -> QuietServer:
    """A server for `app`, https with `tls`, whose connections `book` counts; run it with `serve(sockets=[...])`."""
    whole = KnownHeads(app.whole) if isinstance(app, Edge) and app.whole is not None else None
    heads = AnswerHeads(STATUS_LINE)
    settings: dict[str, Any] = {
        "http": partial(protocol, book if book is not None else ConnectionBook(ConnectionBounds()), heads, whole),
        "loop": "none", "ws": "none", "lifespan": "off", "log_config": None, "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # nobody's word counts for where a request is from
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": graceful_seconds,
    }  # fmt: skip
    return QuietServer(Config(app, **settings), tls, heads)
