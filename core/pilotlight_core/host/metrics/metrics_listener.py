"""Metrics on a port of their own: they tell of the whole platform, and need no key.

A server of a few lines, so that agents need no web framework: one request per connection, within bounds.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import structlog

HEAD_BYTES = 16 * 1024
ANSWER_S = 10.0
"""For a request and its answer, from the first byte to the last; as long as Prometheus waits by default."""
CONNECTIONS = 32
"""At a time; more are closed at once."""
PLAIN = "text/plain; charset=utf-8"

Render = Callable[[str], tuple[bytes, str]]
"""What is shown for an Accept header, and its media type."""
ACCEPT = re.compile(rb"\r\naccept:[ \t]*([^\r\n]*)", re.IGNORECASE)

log = structlog.get_logger(__name__)


class CannotListen(OSError):
    """The port for metrics is in use, or may not be used."""


@asynccontextmanager
async def serving_metrics(host: str, port: int, render: Render) -> AsyncIterator[None]:
    """Serve `GET /metrics` with what `render` returns, and `GET /healthz`, within the block; port 0: not at all.

    Raises:
        CannotListen: the port is in use, or the host is none of this machine's.
    """
    if not port:
        yield
        return
    group, conversations = asyncio.TaskGroup(), set[asyncio.Task[None]]()

    def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(conversations) >= CONNECTIONS:
            writer.transport.abort()
            return
        task = group.create_task(_converse(reader, writer, render))
        conversations.add(task)
        task.add_done_callback(conversations.discard)

    try:
        server = await asyncio.start_server(on_connection, host, port, limit=HEAD_BYTES, start_serving=False)
    except OSError as error:
        raise CannotListen(f"Metrics cannot be served on --metrics-port {port} of {host}: {error.strerror}.") from None
    try:
        async with group:
            await server.start_serving()
            try:
                yield
            finally:
                server.close()
                for task in conversations:
                    task.cancel()
    finally:
        server.close()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, render: Render) -> None:
    try:
        async with asyncio.timeout(ANSWER_S):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer(head, render))
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    except (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError):
        pass  # the client left, was too slow, or asked for too much: it gets nothing
    finally:
        writer.transport.abort()


def answer(head: bytes, render: Render) -> bytes:
    """The whole answer to the head of a request."""
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    reply = partial(_reply, is_head=method == b"HEAD")
    if method not in (b"GET", b"HEAD"):
        return reply("405 Method Not Allowed", PLAIN, b"", more="allow: GET, HEAD\r\n")
    if path == b"/healthz":
        return reply("200 OK", "application/json", b'{"status":"alive"}')
    if path != b"/metrics":
        return reply("404 Not Found", PLAIN, b"")
    try:
        accept = ACCEPT.search(head)
        body, kind = render(accept[1].decode("latin-1") if accept is not None else "")
        return reply("200 OK", kind, body)
    except Exception:
        log.exception("the metrics cannot be read")
        return reply("500 Internal Server Error", PLAIN, b"")


def _reply(status: str, kind: str, body: bytes, *, is_head: bool, more: str = "") -> bytes:
    of_body = f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    head = f"HTTP/1.1 {status}\r\n{of_body}connection: close\r\n{more}\r\n"
    return head.encode() + (b"" if is_head else body)
