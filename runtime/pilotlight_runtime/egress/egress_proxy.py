"""The proxy: takes connections of containers, each on the socket of its own, and connects them to where they may.

accept      within the bounds of the container, its tenant and all
head        CONNECT or a request in clear, within HEAD_S and MOST_HEAD
rules       is it in the container's targets
connect     the name resolved, vetted, pinned
hello       of TLS: the server name must be the host that was asked for, also in a second one if the server wants it
relay       64 KiB at a time in each direction, so that whoever does not read holds up his own connection alone; who
            moves much takes turns with other tenants, by bytes
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import structlog

from pilotlight_core.model.networks.network_targets import NetworkTarget, Transport, parse_target
from pilotlight_runtime.egress.byte_turns import ByteTurns
from pilotlight_runtime.egress.client_hello import MOST_HELLO, HelloReader, NoServerName
from pilotlight_runtime.egress.connection_rules import index_target, transport_of
from pilotlight_runtime.egress.pinned_connections import PinnedConnections
from pilotlight_runtime.egress.proxy_messages import CountedBytes, OpenWay
from pilotlight_runtime.egress.proxy_requests import (
    END,
    MOST_HEAD,
    ProxyRequest,
    RefusedRequest,
    parse_request,
    refusal,
)
from pilotlight_runtime.egress.server_hello import AnswerReader

log = structlog.get_logger(__name__)

NEVER = -math.inf
"""When a connection was due of whoever has made none: the clock of a machine that has just started is near 0."""
CHUNK = 64 * 1024
"""Bytes that a connection holds in each direction."""
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
UNRECOGNIZED_NAME = bytes((21, 3, 3, 0, 2, 2, 112))
"""A TLS alert, by which clients say more than that the connection ended."""
SWEEP_S = 1.0
ACCEPT_PAUSE_S = 0.1
"""After an accept that failed, as when the process is out of descriptors."""


@dataclass(frozen=True, kw_only=True)
class ProxyBounds:
    """What may be held at a time, and for how long."""

    connections: int = 1024
    of_tenant: int = 128
    of_container: int = 64
    per_second: float = 50.0
    """New ones of a container, `of_container` of which may come at once; further ones wait to be taken. A new one costs
    the proxy as much as half a megabyte."""
    tenant_per_second: float = 100.0
    """The same of all containers of a tenant, with `of_tenant`."""
    head_s: float = 10.0
    """For the request, and again for the first message of TLS."""
    answer_s: float = 5.0
    """For the client to take an answer of the proxy's own."""
    wide: int = 128
    """Connections whose servers may send as far ahead as the kernel likes, which is megabytes; others, 128 KiB."""
    wide_of_tenant: int = 16
    idle_s: float = 300.0
    whole_s: float = 3600.0


@dataclass(eq=False)
class _Connection:
    """One of a container's connections."""

    began_at: float
    touched_at: float
    task: asyncio.Task[None] | None = None


@dataclass(eq=False)
class _Way:
    """A container's socket, and what it has had through it."""

    asked: OpenWay
    targets: tuple[NetworkTarget, ...]
    listener: socket.socket
    accepting: asyncio.Task[None] | None = None
    open: set[_Connection] = field(default_factory=set)
    sent: int = 0
    received: int = 0
    connections: int = 0
    refused: int = 0
    counted: CountedBytes | None = None

    def count(self, *, is_last: bool = False) -> CountedBytes:
        return CountedBytes(
            container=self.asked.container,
            sent=self.sent,
            received=self.received,
            connections=self.connections,
            refused=self.refused,
            is_last=is_last,
        )


class EgressProxy:
    """Serves containers, in tasks of `group`. `clock` is the loop's."""

    def __init__(
        self,
        connections: PinnedConnections,
        group: asyncio.TaskGroup,
        *,
        bounds: ProxyBounds | None = None,
        clock: Callable[[], float],
    ) -> None:
        self._pinned = connections
        self._group = group
        self.bounds = bounds or ProxyBounds()
        self._clock = clock
        self._turns = ByteTurns(asyncio.get_running_loop().call_soon)
        self._ways: dict[str, _Way] = {}
        self._of_tenant = Counter[str]()
        self._due_at: dict[str, float] = {}
        """By tenant with a way: when its next connection is due."""

    def open(self, asked: OpenWay, listener: socket.socket) -> None:
        """Serve a container's socket from now on; it is closed with the way."""
        self.close(asked.container)
        listener.setblocking(False)  # noqa: FBT003 - its only argument
        read = index_target if asked.is_index else parse_target
        way = _Way(asked, tuple(map(read, asked.targets)), listener)
        self._ways[asked.container] = way
        way.accepting = self._group.create_task(self._accept(way))
        # Not before the task has let go of it: the loop would take the next descriptor of that number for it.
        way.accepting.add_done_callback(lambda _: listener.close())

    def close(self, container: str) -> CountedBytes | None:
        """End a container's connections; what it has had in all, or None if it is not known."""
        way = self._ways.pop(container, None)
        if way is None:
            return None
        for task in (way.accepting, *(each.task for each in way.open)):
            if task is not None:
                task.cancel()
        if all(each.asked.tenant != way.asked.tenant for each in self._ways.values()):
            self._due_at.pop(way.asked.tenant, None)
        return way.count(is_last=True)

    def changed_counts(self) -> Iterator[CountedBytes]:
        """The counts of containers that have changed since this was last asked."""
        for way in self._ways.values():
            counted = way.count()
            if counted != way.counted:
                way.counted = counted
                yield counted

    def sweep(self, at: float) -> None:
        """End connections that rest for too long, or are too old."""
        for way in self._ways.values():
            for each in way.open:
                old = at - each.began_at >= self.bounds.whole_s
                if each.task is not None and (old or at - each.touched_at >= self.bounds.idle_s):
                    each.task.cancel()

    @property
    def held(self) -> int:
        """Connections."""
        return self._of_tenant.total()

    def is_wide(self, tenant: str) -> bool:
        """Whether a tenant's connection may be sent megabytes that it has not read yet, as fast ones need."""
        return self.held <= self.bounds.wide and self._of_tenant[tenant] <= self.bounds.wide_of_tenant

    def check_integrity(self) -> None:
        """Raise AssertionError if a connection is counted that is not there."""
        assert self.held >= sum(len(way.open) for way in self._ways.values())  # noqa: S101 - it is what it is for

    async def _accept(self, way: _Way) -> None:
        loop, next_at = asyncio.get_running_loop(), NEVER
        tenant, bounds = way.asked.tenant, self.bounds
        while True:
            at = self._clock()
            next_at = accepts_next_at(next_at, at, bounds.of_container, bounds.per_second)
            tenants_at = accepts_next_at(
                self._due_at.get(tenant, NEVER), at, bounds.of_tenant, bounds.tenant_per_second
            )
            self._due_at[tenant] = tenants_at
            await asyncio.sleep(max(0.0, max(next_at, tenants_at) - at))
            try:
                client, _ = await loop.sock_accept(way.listener)
            except OSError as error:
                log.warning("a connection could not be taken", container=way.asked.container, error=str(error))
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            at, held = self._clock(), self._of_tenant[tenant]
            if len(way.open) >= bounds.of_container or held >= bounds.of_tenant or self.held >= bounds.connections:
                way.refused += 1
                with client, contextlib.suppress(OSError):
                    client.send(refusal(RefusedRequest(503, "too many connections at a time")), socket.MSG_DONTWAIT)
                continue
            connection = _Connection(at, at)
            way.open.add(connection)
            self._of_tenant[tenant] += 1
            connection.task = self._group.create_task(self._serve(way, connection, client))
            connection.task.add_done_callback(partial(self._ended, way, connection, client))

    def _ended(self, way: _Way, connection: _Connection, client: socket.socket, _task: asyncio.Task[None]) -> None:
        """Also of one that was cancelled before it began."""
        client.close()
        way.open.discard(connection)
        tenant = way.asked.tenant
        self._of_tenant[tenant] -= 1
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]

    async def _serve(self, way: _Way, connection: _Connection, client: socket.socket) -> None:
        try:
            await self._connect(way, connection, client)
        except RefusedRequest as refused:
            way.refused += 1
            with contextlib.suppress(OSError, TimeoutError):
                await self._answer(client, refusal(refused))
        except (OSError, TimeoutError):
            pass  # the client has gone, or says nothing
        except Exception:
            log.exception("a connection went wrong; the others go on", container=way.asked.container)

    async def _connect(self, way: _Way, connection: _Connection, client: socket.socket) -> None:
        async with asyncio.timeout(self.bounds.head_s):
            head, more = await _read_head(client)
        request = parse_request(head)
        transport = transport_of(request, way.targets, is_index=way.asked.is_index)
        is_wide = self.is_wide(way.asked.tenant)
        with await self._pinned.open(way.asked.tenant, request.host, request.port, is_wide=is_wide) as server:
            if request.is_tunnel:
                await self._answer(client, ESTABLISHED)
                if transport is Transport.TLS:
                    if (opened := await self._open_tls(way, request.host, client, server, more)) is None:
                        return
                    more = opened
            else:
                more = request.forwarded + more[: request.body_bytes]
            way.connections += 1
            await self._relay(way, connection, client, server, request, more)

    async def _open_tls(
        self, way: _Way, host: str, client: socket.socket, server: socket.socket, more: bytes
    ) -> bytes | None:
        """Let a client begin TLS with its host; what of its bytes is still to be sent, or None: it is refused.

        What comes behind the first message is held until the server has answered: it may ask for another (after which
        servers go by the name in that one).
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.bounds.head_s):
                hello, held = await _named_hello(HelloReader(), host, client, more)
                await loop.sock_sendall(server, hello)
                way.sent += len(hello)
            async with asyncio.timeout(self.bounds.head_s):
                answer = AnswerReader()
                while (asks_again := answer.add(data := await _received(server, CHUNK))) is None:
                    await self._pass_back(way, client, data)
                await self._pass_back(way, client, data)
            if not asks_again:
                return held
            async with asyncio.timeout(self.bounds.head_s):
                hello, held = await _named_hello(HelloReader(may_change_cipher=True), host, client, held)
            return hello + held
        except NoServerName:
            way.refused += 1
            await self._answer(client, UNRECOGNIZED_NAME)
            return None

    async def _pass_back(self, way: _Way, client: socket.socket, data: bytes) -> None:
        await self._answer(client, data)
        way.received += len(data)

    async def _answer(self, client: socket.socket, data: bytes) -> None:
        async with asyncio.timeout(self.bounds.answer_s):
            await asyncio.get_running_loop().sock_sendall(client, data)

    async def _relay(
        self,
        way: _Way,
        connection: _Connection,
        client: socket.socket,
        server: socket.socket,
        request: ProxyRequest,
        first: bytes,
    ) -> None:
        """Carry bytes until both sides have ended; `first` goes to the server before others."""
        connection.touched_at = self._clock()
        rest = None if request.is_tunnel else request.body_bytes - (len(first) - len(request.forwarded))

        def sent(size: int) -> None:
            way.sent += size
            connection.touched_at = self._clock()

        def received(size: int) -> None:
            way.received += size
            connection.touched_at = self._clock()

        turn = partial(self._turns.take, way.asked.tenant)

        async def upstream() -> None:
            await asyncio.get_running_loop().sock_sendall(server, first)
            sent(len(first))
            # A request in clear ends with its body: its server must not take the end of the client's bytes for more.
            await _carry(client, server, turn, sent, rest, ends=request.is_tunnel)

        try:
            async with asyncio.TaskGroup() as both:
                sending = both.create_task(upstream())
                await _carry(server, client, turn, received, None, ends=True)
                if not request.is_tunnel:
                    sending.cancel()  # the server has answered, and reads no more
        except* OSError:
            pass  # a side has gone, and with it the connection


def accepts_next_at(due_at: float, at: float, burst: int, per_second: float) -> float:
    """When the next connection is taken at the earliest, from when this one was due; a burst comes at once."""
    return max(due_at, at - burst / per_second) + 1.0 / per_second


async def _carry(
    source: socket.socket,
    sink: socket.socket,
    turn: Callable[[int], Awaitable[None]],
    count: Callable[[int], None],
    rest: int | None,
    *,
    ends: bool,
) -> None:
    """Carry bytes, `rest` at most, each time in `turn`, until the source ends, and tell the sink so."""
    loop, space = asyncio.get_running_loop(), bytearray(CHUNK)
    view = memoryview(space)
    while rest is None or rest > 0:
        size = await loop.sock_recv_into(source, view if rest is None else view[: min(CHUNK, rest)])
        if not size:
            break
        await turn(size)
        await loop.sock_sendall(sink, view[:size])
        count(size)
        rest = None if rest is None else rest - size
    if ends:
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


async def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, and what came behind it. Raises RefusedRequest, OSError."""
    data, seen = bytearray(), 0
    while (end := data.find(END, seen)) < 0:
        if len(data) >= MOST_HEAD:
            raise RefusedRequest(431, f"the request is larger than {MOST_HEAD} bytes without its body")
        seen = max(0, len(data) - len(END) + 1)
        data += await _received(client, MOST_HEAD - len(data))
    return bytes(data[: end + len(END)]), bytes(data[end + len(END) :])


async def _named_hello(reader: HelloReader, host: str, client: socket.socket, more: bytes) -> tuple[bytes, bytes]:
    """The client's first message of TLS, with this name in it, and what came behind. Raises NoServerName, OSError."""
    while (found := reader.add(more)) is None:
        more = await _received(client, MOST_HELLO)
    if found != host:
        raise NoServerName("it names another server than it is connected to (SNI)")
    return reader.take()


async def _received(client: socket.socket, most: int) -> bytes:
    """Some bytes; raises ConnectionError at the end."""
    data = await asyncio.get_running_loop().sock_recv(client, most)
    if not data:
        raise ConnectionError("the client has gone")
    return data
