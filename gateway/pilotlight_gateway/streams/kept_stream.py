"""The events of one stream, kept so that its reader can go and come back, at this gateway or another.

    a call's events --put--> [ sent, kept while there is room | unread ] --read--> its reader

One reader at a time: a new one takes the stream over. It reads bytes by a cursor, which says how far it is. What it has
read is kept as far as the memory goes, for the case that it got lost on its way; while much is unread, `put` waits, and
with it the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pilotlight_core.model.errors import NotFound, Unavailable
from pilotlight_gateway.bodies.byte_budget import ByteBudget

UNREAD_EVENTS = 256
UNREAD_BYTES = 2 * 2**20
"""Beyond either, the call waits for its reader."""
KEPT_BYTES = 2**20
"""Of what was read."""
KEPT_EVENTS = 16_384


class KeptEvent(NamedTuple):
    """An event as it is sent. Stages have no number of their own, but that of the event before."""

    number: int
    data: bytes
    is_held: bool
    """Whether the byte budget counts it."""


class Cursor(NamedTuple):
    """How far a reader is: at an event, by its place in the stream, and at a byte of it."""

    place: int
    offset: int = 0


class ReadBytes(NamedTuple):
    """What a reader gets."""

    data: bytes
    cursor: Cursor
    is_over: bool
    """Nothing follows: the stream has ended, or another reader has taken it over."""


class KeptStream:
    """`make_room` frees memory that ended streams of a tenant hold; `clock`: monotonic seconds."""

    def __init__(
        self,
        call_id: str,
        tenant: str,
        resume_s: float,
        *,
        budget: ByteBudget,
        make_room: Callable[[str], bool],
        clock: Callable[[], float],
    ) -> None:
        self.call_id = call_id
        self.tenant = tenant
        self.resume_s = resume_s
        """Seconds without a reader after which it is given up."""
        self.has_ended = False
        self.last_number = 0
        """Of the last event that came."""
        self._budget = budget
        self._make_room = make_room
        self._clock = clock
        self._events: deque[KeptEvent] = deque()
        self._first = 0
        """The place of the first event that is kept."""
        self._read = 0
        """The place of the first event that its reader has not got."""
        self._dropped_number = 0
        """The highest number of an event that is not kept any more."""
        self._unread_bytes = self._kept_bytes = 0
        self._reader = ""
        self._left_at: float | None = clock()
        """Since when nobody reads; None: somebody does."""
        self._changed = asyncio.Event()
        """Set and replaced at each change that somebody may wait for."""

    @property
    def place(self) -> int:
        """Where the next event comes."""
        return self._first + len(self._events)

    @property
    def is_whole(self) -> bool:
        """Whether the byte budget counts all that is kept."""
        return all(event.is_held for event in self._events)

    # -- what comes ----------------------------------------------------------------------------------------------

    async def put(self, number: int, data: bytes) -> None:
        """Keep an event, as soon as its reader has left room for it; `number` as a `KeptEvent` has it."""
        while True:
            is_held = not self._is_full() and self._hold(len(data))
            if is_held or self._read == self.place:  # its reader waits for it, who must not wait for memory
                break
            await self._wait_change()
        self._append(number, data, is_held=is_held)

    def end(self, number: int, data: bytes) -> None:
        """Keep the last event."""
        self._append(number, data, is_held=self._hold(len(data)))
        self.has_ended = True
        self._notify()

    def discard(self) -> None:
        """Keep nothing any more."""
        self.has_ended = True
        while self._events:
            self._drop()
        self._notify()

    # -- who reads -----------------------------------------------------------------------------------------------

    def attach(self, reader: str, after: int) -> Cursor:
        """`reader` reads from now on, behind the event `after`; whoever read before reads no more.

        Raises:
            NotFound: `events_gone`: an event behind `after` is not kept any more.
        """
        if after < self._dropped_number:
            raise NotFound(
                f"The events behind {after} are not kept any more, only those behind {self._dropped_number}.",
                code="events_gone",
            )
        if after > self.last_number:
            raise NotFound(f"There is no event {after} yet: the last one is {self.last_number}.", code="events_gone")
        self._reader, self._left_at = reader, None
        place = next((n for n, event in enumerate(self._events) if event.number > after), len(self._events))
        self._notify()
        return Cursor(self._first + place)

    async def read(self, reader: str, cursor: Cursor, most: int, within_s: float | None = None) -> ReadBytes:
        """What follows the cursor, at most so many bytes; waits for some, `within_s` seconds at most (None: for ever).

        What is before the cursor counts as read.
        """
        until = None if within_s is None else self._clock() + within_s
        while True:
            if reader != self._reader or cursor.place < self._first:
                return ReadBytes(b"", cursor, is_over=True)
            self._left_at = None
            self._note_read(cursor.place)
            if cursor.place < self.place:
                return self._bytes_from(cursor, most)
            if self.has_ended:
                return ReadBytes(b"", cursor, is_over=True)
            left_s = None if until is None else until - self._clock()
            if left_s is not None and left_s <= 0:
                return ReadBytes(b"", cursor, is_over=False)
            await self._wait_change(left_s)

    def leave(self, reader: str) -> None:
        """`reader` reads no more, and may come back."""
        if reader == self._reader and self._left_at is None:
            self._left_at = self._clock()
            self._notify()

    async def wait_abandoned(self) -> None:
        """Wait until nobody has read for `resume_s`."""
        while True:
            if self._left_at is None:
                await self._wait_change()
                continue
            left_s = self._left_at + self.resume_s - self._clock()
            if left_s <= 0:
                return
            await self._wait_change(left_s)

    # -- inside --------------------------------------------------------------------------------------------------

    def _bytes_from(self, cursor: Cursor, most: int) -> ReadBytes:
        place, offset = cursor
        pieces: list[bytes] = []
        room = most
        while place < self.place and room > 0:
            data = self._events[place - self._first].data
            piece = data[offset : offset + room] if offset or len(data) > room else data
            pieces.append(piece)
            room -= len(piece)
            offset += len(piece)
            if offset >= len(data):
                place, offset = place + 1, 0
        return ReadBytes(b"".join(pieces), Cursor(place, offset), is_over=self.has_ended and place == self.place)

    def _note_read(self, place: int) -> None:
        if place <= self._read:
            return
        for number in range(self._read - self._first, place - self._first):
            size = len(self._events[number].data)
            self._unread_bytes -= size
            self._kept_bytes += size
        self._read = place
        while self._read > self._first and self._keeps_too_much():
            self._drop()
        self._notify()

    def _keeps_too_much(self) -> bool:
        """Of what was read, or without memory that is counted for it."""
        is_much = self._kept_bytes > KEPT_BYTES or self._read - self._first > KEPT_EVENTS
        return is_much or not self._events[0].is_held

    def _is_full(self) -> bool:
        return self.place - self._read >= UNREAD_EVENTS or self._unread_bytes > UNREAD_BYTES

    def _hold(self, size: int) -> bool:
        """Whether the budget has the bytes; what ended streams hold and what was read makes room."""
        while True:
            try:
                self._budget.take(size, self.tenant)
            except Unavailable:
                if self._make_room(self.tenant):
                    continue
                if self._read == self._first:
                    return False
                self._drop()
            else:
                return True

    def _append(self, number: int, data: bytes, *, is_held: bool) -> None:
        self._events.append(KeptEvent(number, data, is_held))
        self._unread_bytes += len(data)
        self.last_number = number
        self._notify()

    def _drop(self) -> None:
        """The first event is not kept any more."""
        event = self._events.popleft()
        if self._first < self._read:
            self._kept_bytes -= len(event.data)
        else:
            self._unread_bytes -= len(event.data)
            self._read += 1
        self._first += 1
        self._dropped_number = max(self._dropped_number, event.number)
        if event.is_held:
            self._budget.give_back(len(event.data), self.tenant)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_change(self, within_s: float | None = None) -> None:
        changed = self._changed
        try:
            async with asyncio.timeout(within_s):
                await changed.wait()
        except TimeoutError:
            return
