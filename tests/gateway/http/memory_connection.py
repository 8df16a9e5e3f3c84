"""A connection of the real server without a socket: what a client sends and reads, and when it hangs up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from pilotlight_gateway.http.server import make_server
from tests.waiting import until


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One that was read."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class MemoryTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        if not self.closed:
            self.written += data

    def get_extra_info(self, _name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading


class MemoryConnection:
    """A client's end. `protocol` is the server's."""

    def __init__(self, app: ASGIApp) -> None:
        server = make_server(app)
        server.config.load()
        make_protocol: Any = server.config.http_protocol_class
        self.state = server.server_state
        self.protocol = make_protocol(config=server.config, server_state=server.server_state, app_state={})
        self.transport = MemoryTransport()
        self.protocol.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def hang_up(self) -> None:
        self.transport.closed = True
        self.protocol.connection_lost(None)

    def stop_reading(self) -> None:
        self.protocol.pause_writing()

    def read_on(self) -> None:
        self.protocol.resume_writing()

    @property
    def at_work(self) -> bool:
        """Whether a task of the server's serves a request."""
        return bool(self.state.tasks)

    def read(self) -> Answer | None:
        """The next answer, if it is here."""
        head, end, rest = self.transport.written.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.split(b"\r\n")
        headers = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
        size = int(dict(headers)[b"content-length"])
        if len(rest) < size:
            return None
        self.transport.written = rest[size:]
        return Answer(status=int(first.split()[1]), headers=headers, body=rest[:size])

    async def answer(self) -> Answer:
        """The next answer, once it is here."""
        found = None

        def is_here() -> bool:
            nonlocal found
            found = self.read()
            return found is not None

        await until(is_here)
        assert found is not None
        return found
