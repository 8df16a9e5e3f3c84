"""Accepts connections with TLS: their handshakes are bounded.

A server of asyncio shows a protocol its connection only after the handshake, for which it allows a minute: strangers
who connect and say nothing would hold as many connections as the process may have files, and no `ConnectionBook` would
know. So this accepts by itself, and counts those whose handshake is under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from socket import socket
from ssl import SSLContext

import structlog

from pilotlight_gateway.limits.connections import is_in_networks, source_of

HANDSHAKE_SECONDS = 10.0
"""As long as a request's head may take."""
SHUTDOWN_SECONDS = 2.0
"""How long a client may take to say that it has heard of its connection's end, before that is aborted."""
RETRY_S = 1.0
"""Until it accepts again after the system had no room for a connection."""
OF_FILES = 8
"""The part of the files that a process may have which handshakes may take."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class HandshakeBounds:
    """How many handshakes may be under way at a time."""

    of_all: int = 1024
    """Beyond, the oldest gives way: whoever speaks TLS has ended it long before."""
    of_address: int = 512
    """Beyond, connections of that address are closed as they come."""
    exempt: tuple[IPv4Network | IPv6Network, ...] = ()
    """Of the bound of an address: reverse proxies, which speak for many."""

    def within(self, files: int) -> HandshakeBounds:
        """These for a process that may have so many files open."""
        return replace(self, of_all=max(1, min(self.of_all, files // OF_FILES)))


class TlsListener:
    """What accepts on the sockets of one server; the server closes it as it does its own."""

    def __init__(self, context: SSLContext, bounds: HandshakeBounds) -> None:
        self._context = context
        self.bounds = bounds
        self.handshake_seconds, self.shutdown_seconds = HANDSHAKE_SECONDS, SHUTDOWN_SECONDS
        self._by_address: Counter[str] = Counter()
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """The oldest first."""
        self._accepting: set[asyncio.Task[None]] = set()
        self._make: Callable[[], asyncio.Protocol] = asyncio.Protocol
        self.refused = 0
        """Connections that were closed as they came."""

    @property
    def under_way(self) -> int:
        """Handshakes."""
        return len(self._handshakes)

    def start(self, sockets: Iterable[socket], protocol: Callable[[], asyncio.Protocol]) -> None:
        """Accept until it is closed; `protocol` makes that of a connection after its handshake."""
        self._make = protocol
        for each in sockets:
            task = asyncio.get_running_loop().create_task(self._accept(each))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    def close(self) -> None:
        """Accept no more, and end the handshakes that are under way."""
        for task in (*self._accepting, *self._handshakes):
            task.cancel()

    async def wait_closed(self) -> None:
        if tasks := {*self._accepting, *self._handshakes}:
            await asyncio.wait(tasks)

    async def _accept(self, listening: socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except OSError as error:  # no descriptors are left, or the client has gone
                log.warning("a connection could not be accepted", error=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            address, bounds = str(peer[0]), self.bounds
            source = source_of(address)
            if self._by_address[source] >= bounds.of_address and not is_in_networks(address, bounds.exempt):
                self.refused += 1
                connection.close()
                continue
            if len(self._handshakes) >= bounds.of_all:
                next(iter(self._handshakes)).cancel()
                await asyncio.sleep(0)  # it ends now: accepting alone need not give way, however many wait
            self._by_address[source] += 1
            task = loop.create_task(self._shake_hands(connection))
            self._handshakes[task] = None
            task.add_done_callback(partial(self._on_ended, source))

    def _on_ended(self, source: str, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        self._by_address[source] -= 1
        if not self._by_address[source]:
            del self._by_address[source]

    async def _shake_hands(self, connection: socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self.handshake_seconds,
                ssl_shutdown_timeout=self.shutdown_seconds,
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError: whoever it was, it spoke no TLS of ours
            log.debug("no handshake", error=repr(error))
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
