"""Uvicorn's server without what a process of several does not want: its signals, and a look ten times a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from socket import socket
from typing import Protocol, runtime_checkable

from uvicorn import Config, Server

from pilotlight_gateway.http.listening_socket import end_handshakes
from pilotlight_gateway.http.tls_listener import TlsListener

SECOND_S, TICKS_A_SECOND = 1.0, 10
"""Of uvicorn's ticks, every tenth has work: it makes the header of the next second's answers."""

SETTLE_TURNS, TURN_S = 10, 0.005
"""For handshakes that had begun, and for reading what came with them: accepting and reading take turns of the loop, and
on a busy machine one turn may take all of the time."""


class EndingAnswers(Protocol):
    """How the answers of all connections begin."""

    are_last: bool
    """Whether each ends its connection."""


@runtime_checkable
class EndingConnection(Protocol):
    """A connection that can end in order."""

    def end_after_answer(self) -> None:
        """End with the answer to the present request, if there is one."""
        ...


class QuietServer(Server):
    """A server that leaves signals to its process, and waits for its end."""

    def __init__(self, config: Config, tls: TlsListener | None = None, heads: EndingAnswers | None = None) -> None:
        super().__init__(config)
        self.tls = tls
        self._heads = heads
        self._stopped = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        if self.tls is None or sockets is None:
            await super().startup(sockets)
            return
        ours = {"config": self.config, "server_state": self.server_state, "app_state": {}, "_loop": None}
        self.tls.start(sockets, partial(self.config.http_protocol_class, **ours))
        self.servers, self.started = [self.tls], True  # type: ignore[list-item] # it is closed as one of asyncio's is

    def end_connections(self) -> None:
        """Go on, but end each connection with its next answer, so that its client opens the next one elsewhere."""
        if self._heads is not None:
            self._heads.are_last = True
        for connection in list(self.server_state.connections):
            if isinstance(connection, EndingConnection):
                connection.end_after_answer()

    def stop(self) -> None:
        """Finish present answers and end."""
        self.should_exit = True
        self._stopped.set()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Uvicorn's, after everything is read that has come: what is closed unread, or unaccepted, is reset."""
        self.end_connections()
        for each in sockets or ():
            end_handshakes(each)
        for _ in range(SETTLE_TURNS):
            await asyncio.sleep(TURN_S)
        await super().shutdown(sockets)

    async def main_loop(self) -> None:
        """Uvicorn's, but that it hears of its end at once."""
        ticks = 0
        while not await self.on_tick(ticks):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), SECOND_S)
            ticks += TICKS_A_SECOND
