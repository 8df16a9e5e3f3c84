"""Reading a stream in order, each message once, also over restarts of the server.

A `StreamCursor` reads the next page by sequence and moves on. The server keeps nothing between pages, so there is no
consumer to lose, leak or restore. To follow a stream, the cursor listens to its subjects as a doorbell and then reads;
`PendingReads` repeats the read until the announced messages are stored, and a slow poll finds messages whose bell was
lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Protocol, TypeVar

import msgspec

from pilotlight_core.bus.bus_errors import BusDown, BusTimeout, NoResponders
from pilotlight_core.bus.connection import BusConnection
from pilotlight_core.bus.doorbells import PendingReads
from pilotlight_core.bus.jetstream import FIRST_PAUSE_S, LONGEST_PAUSE_S, StreamPage
from pilotlight_core.model.messages.wire import decode

POLL_S = 1.0
SETTLE_S = 0.005
"""Seconds between the bell and the read, so that simultaneous messages are read together and are mostly stored."""
_PHASE_S = random.random()
"""Those who read once in a while do so at the same instants: reads that go together, and whose answers come together,
cost half as much. Other processes have other instants.
"""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ReadFrom(Protocol[T_co]):
    """Reads a stream from "all", "new" or a sequence number on."""

    def __call__(self, start: str | int, /, *, follow: bool) -> AsyncGenerator[tuple[int, T_co | None], None]: ...


class Undecodable(msgspec.Struct, frozen=True):
    """What somebody stored that is no message of the platform."""

    data: bytes
    error: str


class DecodedMessage(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    subject: str
    message: Any
    """A message of the platform, or `Undecodable`."""
    at: float


class StreamCursor:
    """A position in a stream that moves forward page by page."""

    def __init__(self, bus: BusConnection, stream: str, subject: str, seq: int = 1) -> None:
        self._bus = bus
        self._stream = stream
        self._subject = subject
        self.next = seq
        self._bell = asyncio.Event()
        self._rings = PendingReads()

    def ring(self) -> None:
        self._rings.ring()
        self._bell.set()

    async def read(self) -> StreamPage:
        """The next page; it waits while the server is unavailable."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                page = await self._bus.jetstream.page(self._stream, self._subject, self.next)
            except (BusDown, BusTimeout, NoResponders):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            if page.records:
                self.next = page.records[-1].seq + 1
                self._rings.read(len(page.records))
            return page

    async def wait_bell(self, poll: float = POLL_S) -> None:
        """Wait until something is published on the subject or the next read is due, within `poll` seconds."""
        with contextlib.suppress(TimeoutError):
            at = asyncio.get_running_loop().time()
            async with asyncio.timeout_at(at + (self._rings.pause() or until_next_read(at, poll))):
                await self._bell.wait()
                await asyncio.sleep(SETTLE_S)
        self._bell.clear()


def until_next_read(at: float, every_s: float, phase_s: float = _PHASE_S) -> float:
    """Seconds to the next instant at which those of a process read who do so each `every_s` seconds."""
    left = every_s - (at + phase_s) % every_s
    return left if left > SETTLE_S else left + every_s  # a timer may come a moment early


async def read_stream(
    bus: BusConnection, stream: str, subject: str, *, start: str | int = "all", follow: bool = False
) -> AsyncGenerator[DecodedMessage, None]:
    """See `Bus.read_stream`."""
    position = StreamCursor(bus, stream, subject)
    async with bus.listening(bells={subject: position.ring} if follow else {}):
        position.next = await _first(bus, stream, start)
        while True:
            page = await position.read()
            for record in page.records:
                try:
                    message = decode(record.data)
                except msgspec.DecodeError as error:
                    message = Undecodable(record.data, str(error))
                yield DecodedMessage(seq=record.seq, subject=record.subject, message=message, at=record.at)
            if page.pending:
                continue
            if not follow:
                return
            await position.wait_bell()


async def read_last(read: ReadFrom[T], start: str | int, last: int | None, *, follow: bool) -> AsyncGenerator[T, None]:
    """What `read` finds from `start` on, or only the `last` ones of it; with `follow`, what comes then, without end.

    `read` yields sequence numbers, each with something that was found there, or None.
    """
    if last is not None:
        kept: deque[T] = deque(maxlen=last)
        async with contextlib.aclosing(read(start, follow=False)) as found:
            async for seq, each in found:
                start = seq + 1
                if each is not None:
                    kept.append(each)
        for each in kept:
            yield each
        if not follow:
            return
    async with contextlib.aclosing(read(start, follow=follow)) as found:
        async for _, each in found:
            if each is not None:
                yield each


async def _first(bus: BusConnection, stream: str, start: str | int) -> int:
    if isinstance(start, int):
        return start
    if start == "all":
        return 1
    if start == "new":
        return await bus.jetstream.last_sequence(stream) + 1
    raise ValueError(f"start={start!r}: expected 'all', 'new' or a sequence")
