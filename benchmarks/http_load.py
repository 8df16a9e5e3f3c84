"""A lean HTTP/1.1 client for load: thousands of calls a second from one core, each with its own instant.

httpx costs ten times what it calls; this one writes a request as bytes, reads a status and a body, and keeps the
connection. It knows only what our own gateway answers: Content-Length, no chunks.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; instants in monotonic seconds. `status` 0: the connection broke."""

    status: int
    body: bytes
    sent: float
    ended: float
    retry_after_ms: float | None = None

    @property
    def ms(self) -> float:
        """From sending to the last byte."""
        return (self.ended - self.sent) * 1000.0

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes, float | None]] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.transport = None
        self._settle(0, b"", None)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        length = int(_header(head, b"content-length") or 0)
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        wait = _header(head, b"retry-after-ms")
        self._settle(int(head[9:12]), body, float(wait) if wait else None)

    async def ask(self, request: bytes) -> tuple[int, bytes, float | None]:
        if self.transport is None:  # closed as soon as it was accepted
            return 0, b"", None
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def _settle(self, status: int, body: bytes, wait: float | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((status, body, wait))


def _header(head: bytes, name: bytes) -> bytes:
    start = head.find(b"\r\n" + name + b": ")
    if start < 0:
        return b""
    start += len(name) + 4
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else len(head)]


class Caller:
    """Calls one function at one gateway with one key, on as many connections as it takes."""

    def __init__(self, url: str, ref: str, key: str, *headers: str, trusted: ssl.SSLContext | None = None) -> None:
        """`headers` go with every request: "Prefer: respond-async"; `trusted` verifies a gateway with TLS."""
        split = urlsplit(url)
        self._trusted = trusted
        self._host, self._port = split.hostname or "127.0.0.1", split.port or 80
        named = (f"Host: {split.netloc}", f"Authorization: Bearer {key}", "Content-Type: application/json", *headers)
        lines = (f"POST /v1/functions/{ref}/calls HTTP/1.1", *named, "Content-Length: ")
        self._head = "\r\n".join(lines).encode()
        self._idle: deque[_Connection] = deque()

    async def call(self, **body: Any) -> Answer:
        """One call: `input=…`, and whatever else the envelope takes."""
        return await self.post(msgspec.json.encode(body))

    async def post(self, data: bytes) -> Answer:
        """One call whose envelope is encoded already."""
        connection = await self._connection()
        sent = time.monotonic()
        status, answer, wait = await connection.ask(self._head + str(len(data)).encode() + b"\r\n\r\n" + data)
        ended = time.monotonic()
        if connection.transport is not None:
            self._idle.append(connection)
        return Answer(status, answer, sent, ended, wait)

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            if connection.transport is not None:
                connection.transport.close()

    async def _connection(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.transport is not None:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._host, self._port, ssl=self._trusted)
        return connection


async def took_at_rate(caller: Caller, body: bytes, rate: float, seconds: float) -> list[float]:
    """What calls took that come at a rate whatever comes back, in milliseconds from when each was due."""
    loop = asyncio.get_running_loop()
    began_at = loop.time()

    async def call(due_at: float) -> float:
        answer = await caller.post(body)
        assert answer.status == 200, answer
        return (loop.time() - due_at) * 1_000.0

    async with asyncio.TaskGroup() as group:
        calls = []
        for number in range(int(rate * seconds)):
            due_at = began_at + number / rate
            if (wait := due_at - loop.time()) > 0:
                await asyncio.sleep(wait)
            calls.append(group.create_task(call(due_at)))
    return [each.result() for each in calls]
