"""Accepts connections with TLS: their handshakes are bounded.

A server of asyncio shows a protocol its connection only after the handshake, for which it allows a minute: strangers
who connect and say nothing would hold as many connections as the process may have files, and no `ConnectionBook` would
know. So this accepts by itself, and counts those whose handshake is under way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from socket import socket
from ssl import SSLContext
from typing import Any

import structlog

HANDSHAKE_SECONDS = 10.0
"""As long as a request's head may take."""
MOST_HANDSHAKES, MOST_OF_ADDRESS = 512, 64
"""Under way at a time: of all, and of one address. Beyond, connections are closed as they come."""
RETRY_S = 1.0
"""Until it accepts again after the system had no room for a connection."""

log = structlog.get_logger(__name__)


class TlsListener:
    """What accepts on the sockets of one server; the server closes it as it does its own."""

    def __init__(
        self, context: SSLContext, *, most: int = MOST_HANDSHAKES, most_of_address: int = MOST_OF_ADDRESS
    ) -> None:
        self._context = context
        self.most, self.most_of_address = most, most_of_address
        self.handshake_seconds = HANDSHAKE_SECONDS
        self._by_address: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._make: Callable[[], asyncio.Protocol] = asyncio.Protocol
        self.refused = 0
        """Connections that were closed as they came."""

    @property
    def under_way(self) -> int:
        """Handshakes."""
        return self._by_address.total()

    def start(self, sockets: Iterable[socket], protocol: Callable[[], asyncio.Protocol]) -> None:
        """Accept until it is closed; `protocol` makes that of a connection after its handshake."""
        self._make = protocol
        for each in sockets:
            self._spawn(self._accept(each))

    def close(self) -> None:
        """Accept no more, and end the handshakes that are under way."""
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _accept(self, listening: socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except OSError as error:  # no descriptors are left, or the client has gone
                log.warning("a connection could not be accepted", error=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            address = str(peer[0])
            if self.under_way >= self.most or self._by_address[address] >= self.most_of_address:
                self.refused += 1
                connection.close()
                continue
            self._by_address[address] += 1
            self._spawn(self._shake_hands(connection, address))

    async def _shake_hands(self, connection: socket, address: str) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, connection, ssl=self._context, ssl_handshake_timeout=self.handshake_seconds
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError: whoever it was, it spoke no TLS of ours
            log.debug("no handshake", error=repr(error))
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
