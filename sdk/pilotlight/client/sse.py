"""Reading server-sent events from bytes, as the HTML standard says, within a bound."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

import msgspec

from pilotlight.errors import BadOutput

MAX_EVENT_BYTES = 64 * 2**20
"""The largest event: an answer of 32 MiB in base64, with room."""
LINE_END = re.compile(rb"\r\n|\n|\r")


class Event(msgspec.Struct, frozen=True):
    """One event: its name ("message" unless said) and its data, lines joined."""

    name: str
    data: bytes


class EventReader:
    """Bytes in, events out. Ids and reconnection times are ignored: live calls are not resumed."""

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._searched = 0
        self._name = b""
        self._data: list[bytes] = []
        self._held = 0
        self._at_start = True

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that `data` completes.

        Raises:
            BadOutput: if one is larger than the limit.
        """
        self._rest += data
        for line in self._lines():
            if event := self._read(line):
                yield event
        if len(self._rest) + self._held > self._limit:
            raise BadOutput(f"The answer holds an event of more than {self._limit} bytes.")

    def _lines(self) -> Iterator[bytes]:
        start = 0
        while found := LINE_END.search(self._rest, max(start, self._searched)):
            if found[0] == b"\r" and found.end() == len(self._rest):
                break  # the "\n" that belongs to it may be on its way
            yield bytes(self._rest[start : found.start()])
            start = found.end()
        del self._rest[:start]
        self._searched = max(0, len(self._rest) - 1)

    def _read(self, line: bytes) -> Event | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._held += len(value)
        elif field == b"event":
            self._name = value
        return None

    def _dispatch(self) -> Event | None:
        name, data = self._name, self._data
        self._name, self._data, self._held = b"", [], 0
        return Event(name.decode(errors="replace") or "message", b"\n".join(data)) if data else None


async def events(chunks: AsyncIterator[bytes], limit: int = MAX_EVENT_BYTES) -> AsyncGenerator[Event, None]:
    """The events in a body."""
    reader = EventReader(limit)
    async for chunk in chunks:
        for event in reader.feed(chunk):
            yield event
