"""The HTTP server: uvicorn with bounds on what a connection may do.

uvicorn's httptools protocol has none for request heads: a client could send headers for ever, or hold a connection
open with a byte a minute. Bodies are bounded where they are read (`http.bodies`).

It also saves what a short call can do without: a request whose body came with its head says so (no timer is needed for
what is there), and an answer that is known as a whole leaves in one write instead of two.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import structlog
from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from pilotlight_gateway.http.exchange import BODY_IS_HERE, SEND_WHOLE

log = structlog.get_logger(__name__)

CONNECTIONS = 10_000
HEAD_BYTES = 64 * 1024
"""Give or take one read from the socket."""
READ_BYTES = 256 * 1024
"""What one read from a socket gives at most."""
PIPELINED = 32
"""Requests that may wait on a connection for the answer to an earlier one."""
HEAD_SECONDS = 10.0
LINGER_SECONDS = 2.0
"""How long a body is still read (and thrown away) after its request was answered: a client that sends all before it
reads would otherwise see a broken connection instead of the answer."""
KEEP_ALIVE_SECONDS = 75
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection, within the bounds above."""

    head_seconds = HEAD_SECONDS
    linger_seconds = LINGER_SECONDS
    connections_at_most = CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heading = True
        self._receiving = False
        self._expecting = False
        self._head_size = self._trailing = self._bodiless = 0
        self._timer: asyncio.TimerHandle | None = None
        if len(self.connections) > self.connections_at_most:
            transport.write(TOO_MANY)
            transport.close()
        else:
            self._arm(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._heading and not self.transport.is_closing():
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                self.transport.write(HEAD_TOO_LARGE)
                self.transport.close()
            elif self._timer is None:
                self._arm(self.head_seconds)
        elif self._receiving and not self.transport.is_closing():
            self._bodiless += len(data)
            if self._bodiless > HEAD_BYTES + READ_BYTES:  # a trailer or a chunk's head without an end
                self.transport.close()

    def on_message_begin(self) -> None:
        self._heading = self._receiving = True
        self._head_size = self._trailing = self._bodiless = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._heading:
            # As uvicorn does, without its frame: there are several of each request.
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
            return
        self._trailing += len(name) + len(value)  # a trailer: nobody reads it
        if self._trailing > HEAD_BYTES:
            raise ValueError("trailers too large")

    def on_body(self, body: bytes) -> None:
        self._bodiless = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._heading = False
        self._disarm()
        super().on_headers_complete()
        self._expecting = self.expect_100_continue
        if len(self.pipeline) > PIPELINED:
            raise ValueError("too many pipelined requests")
        if isinstance(self.cycle, RequestResponseCycle):
            self.scope[SEND_WHOLE] = partial(send_whole, self.cycle)  # type: ignore[literal-required]

    def on_message_complete(self) -> None:
        self._receiving = False
        self._disarm()
        super().on_message_complete()
        self.scope[BODY_IS_HERE] = True  # type: ignore[literal-required]

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()  # which uvicorn has just resumed
        if self._receiving and self._expecting:
            # The client may send the body that it was not asked for, or not: what comes next cannot be told apart.
            self.transport.close()
        elif self._receiving and not self._heading and self._timer is None:
            self._arm(self.linger_seconds)

    def _arm(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def send_whole(cycle: RequestResponseCycle, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
    """Send an answer in one write; False: nothing was sent, since that needs the long way (see `Exchange.answer`).

    Raises:
        ValueError: if a header would break out of its line.
    """
    if cycle.flow.write_paused or cycle.response_started or cycle.scope["method"] == "HEAD":
        return False
    if cycle.disconnected:
        return True
    if cycle.waiting_for_100_continue and cycle.more_body:
        cycle.keep_alive = False
    lines = [name + b": " + value for name, value in (*cycle.default_headers, *headers)]
    if not cycle.keep_alive:
        lines.append(b"connection: close")
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1:
        raise ValueError("a header has a line break")
    cycle.transport.write(b"".join((STATUS_LINE[status], head, b"\r\n\r\n", body)))
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()
    return True


class QuietServer(Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Finish what is being answered and end."""
        self.should_exit = True


def make_server(
    app: ASGIApp, *, graceful_seconds: int = 2, protocol: type[BoundedProtocol] = BoundedProtocol
) -> QuietServer:
    """A server for `app`; run it with `serve(sockets=[...])`."""
    settings: dict[str, Any] = {
        "http": protocol,
        "loop": "none",
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": graceful_seconds,
    }
    return QuietServer(Config(app, **settings))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 lets the system choose.

    Raises:
        OSError: if the address is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        listening.settimeout(0.0)
    except OSError:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """Where clients on this machine reach a socket."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - only recognised here
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
