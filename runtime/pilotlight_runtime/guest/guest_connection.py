"""The agent's end of a guest's socket, for asyncio: frames in by a callback, frames out through a bounded buffer.

The frames of one turn of the event loop are written in groups: a write costs more than a small frame, and with all of
a turn in one piece the guest would wait for the turn's end.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from pilotlight_runtime.guest.frames import GROUP, GROUP_BYTES, SMALL_FRAME, FrameDecoder, FromGuest, GuestFrame, encode

MAX_UNSENT = 128 * 2**20
"""Bytes that may wait for a guest that does not read: a few of the largest inputs."""


class GuestGone(ConnectionError):
    """The guest has closed its end."""


class GuestSlow(ConnectionError):
    """The bytes that wait for the guest have reached their bound."""


@dataclass(frozen=True, kw_only=True)
class ConnectionStatistics:
    sent: int
    received: int
    unsent_bytes: int
    open: bool


class GuestConnection(asyncio.BufferedProtocol):
    """Owns the socket; made by `await GuestConnection.open(sock, on_frame=…, on_closed=…)`.

    `on_frame(frame)` runs in the event loop for each frame in order, until the connection is closed; what it raises
    closes it. It may be replaced. `on_closed(error)` runs once: None after a close in order, MalformedFrame for an
    invalid frame (its sandbox should be killed), otherwise the error that broke it.
    """

    def __init__(
        self, on_frame: Callable[[Any], None], on_closed: Callable[[Exception | None], None], max_unsent: int
    ) -> None:
        self.on_frame = on_frame
        self._on_closed = on_closed
        self._max_unsent = max_unsent
        self._inbox = FrameDecoder(FromGuest, limit=SMALL_FRAME)
        self._transport: asyncio.Transport | None = None
        self._broken: Exception | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._group: list[bytes] = []
        """Frames of this turn of the loop that are not written yet."""
        self._group_bytes = 0
        self._is_write_due = False
        self._loop = asyncio.get_running_loop()
        self._sent = 0
        self._received = 0

    @classmethod
    async def open(
        cls,
        sock: socket.socket,
        *,
        on_frame: Callable[[Any], None],
        on_closed: Callable[[Exception | None], None],
        max_unsent: int = MAX_UNSENT,
    ) -> GuestConnection:
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_unix_connection(lambda: cls(on_frame, on_closed, max_unsent), sock=sock)
        return protocol

    def send(self, frame: GuestFrame) -> None:
        """Send a frame with the others of this turn of the loop, or keep it until the guest reads.

        What is not written yet when the connection ends is lost, as is what the guest has not read.

        Raises:
            GuestGone, GuestSlow, FrameTooLarge: nothing was sent.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise GuestGone("the guest is gone")
        data = encode(frame)
        size = self._group_bytes + len(data)
        if transport.get_write_buffer_size() + size > self._max_unsent:
            raise GuestSlow(f"{self._unsent_bytes(transport)} bytes wait for a guest that does not read")
        self._sent += 1
        self._group.append(data)
        self._group_bytes = size
        if len(self._group) >= GROUP or size >= GROUP_BYTES:
            self._write()
        elif not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self._write_rest)

    def _write_rest(self) -> None:
        self._is_write_due = False
        self._write()

    def _write(self) -> None:
        group, size = self._group, self._group_bytes
        if not group or self._transport is None:
            return
        self._group, self._group_bytes = [], 0
        if size < 2 * GROUP_BYTES:
            self._transport.write(b"".join(group))
        else:
            for data in group:  # joining large ones costs more than a write
                self._transport.write(data)

    def _unsent_bytes(self, transport: asyncio.Transport | None) -> int:
        return self._group_bytes + transport.get_write_buffer_size() if transport else 0

    @property
    def unsent_bytes(self) -> int:
        """What waits for the guest to read it."""
        return self._unsent_bytes(self._transport)

    @property
    def is_writable(self) -> bool:
        """Whether next to nothing waits; True once the guest is gone."""
        return self._writable.is_set()

    async def wait_writable(self) -> None:
        await self._writable.wait()

    def set_frame_limit(self, limit: int) -> None:
        """Accept frames of up to `limit` bytes from now on, instead of SMALL_FRAME."""
        self._inbox.limit = limit

    def close(self) -> None:
        """Close at once; what the guest has not read is lost."""
        if self._transport is not None:
            self._transport.abort()

    def statistics(self) -> ConnectionStatistics:
        transport = self._transport
        return ConnectionStatistics(
            sent=self._sent,
            received=self._received,
            unsent_bytes=self._unsent_bytes(transport),
            open=transport is not None and not transport.is_closing(),
        )

    # --- asyncio's side ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._inbox.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._inbox.filled(nbytes):
                if self._transport is None or self._transport.is_closing():
                    return
                self._received += 1
                self.on_frame(frame)
        except Exception as error:  # noqa: BLE001 - on_closed gets it
            self._broken = error
            self.close()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._group.clear()
        self._writable.set()
        self._on_closed(self._broken or exc)
