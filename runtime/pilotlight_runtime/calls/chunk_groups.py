"""Chunks that wait for the end of the loop's turn, so that those for one gateway go to it in one message.

What a guest has written in the meantime comes with one read, and so do the chunks of many streams: a message for each
costs agent and gateway more than the chunks do. Each keeps its number, and those of one stream their order.

And chunks that went over the bus, until their gateway says that it has passed them on: a server of the bus that ends
loses what is inside it, and the gateway asks for it again.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, deque

from pilotlight_core.model.messages.call_messages import ChunkGroup, ChunkRow

GROUP_CHUNKS = 64
GROUP_BYTES = 32 * 1024
"""Of one message: from either on it goes at once, so that the gateway works on it while the agent goes on."""
CHUNKS_KEPT_S = 60.0
"""Behind its last chunk: a stream is kept no longer."""
CHUNKS_KEPT_BYTES = 64 * 2**20
"""Of all streams; that which has been silent for longest goes first. One has 24 MiB under way at most."""
ROW_BYTES = 256
"""Of a row besides its data."""


class GroupDraft:
    """What waits for one gateway."""

    __slots__ = ("_bytes", "_chunks", "_rows")

    def __init__(self) -> None:
        self._rows: dict[str, ChunkRow] = {}
        self._bytes = self._chunks = 0

    def add(self, call_id: str, grant_number: int, seq: int, data: tuple[bytes, ...]) -> bool:
        """Add the next chunks of a call, `seq` the first; whether the group is full."""
        row = self._rows.get(call_id)
        # Of a former grant nobody wants any more, whatever of it still waits.
        if row is not None and row.grant_number == grant_number:
            self._rows[call_id] = ChunkRow(call_id, grant_number, row.seq, row.data + data)
        else:
            self._rows[call_id] = ChunkRow(call_id, grant_number, seq, data)
        self._bytes += len(data[0]) if len(data) == 1 else sum(map(len, data))
        self._chunks += len(data)
        return self._chunks >= GROUP_CHUNKS or self._bytes >= GROUP_BYTES

    def has(self, call_id: str) -> bool:
        """Whether chunks of a call are among them."""
        return call_id in self._rows

    def take(self) -> ChunkGroup | None:
        """The message; nothing waits any more. None: nothing did."""
        rows, self._rows = self._rows, {}
        self._bytes = self._chunks = 0
        if not rows:
            return None
        return ChunkGroup(rows=tuple(rows.values()))


class _Sent:
    """What a stream has under way."""

    __slots__ = ("at", "bytes", "gateway", "grant_number", "rows")

    def __init__(self, gateway: str, grant_number: int) -> None:
        self.gateway = gateway
        self.grant_number = grant_number
        self.rows: deque[ChunkRow] = deque()
        self.bytes = 0
        self.at = 0.0
        """Of the last one."""


class SentChunks:
    """The streams of which chunks may be lost, the one that has been silent for longest first."""

    def __init__(self) -> None:
        self._sent: OrderedDict[str, _Sent] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._sent)

    def keep(self, gateway: str, row: ChunkRow, at: float) -> None:
        """Chunks were sent over the bus, behind those that were sent before."""
        sent = self._sent.get(row.call_id)
        if sent is None or sent.grant_number != row.grant_number:
            self._forget(row.call_id)
            sent = self._sent[row.call_id] = _Sent(gateway, row.grant_number)
        size = _bytes_of(row)
        sent.rows.append(row)
        sent.at = at
        sent.bytes += size
        self._bytes += size
        self._sent.move_to_end(row.call_id)
        while self._bytes > CHUNKS_KEPT_BYTES:
            self._forget(next(iter(self._sent)))

    def passed_on(self, call_id: str, upto: int) -> None:
        """Their gateway has all chunks of the call up to this one."""
        sent = self._sent.get(call_id)
        if sent is None:
            return
        rows = sent.rows
        while rows and rows[0].seq + len(rows[0].data) - 1 <= upto:
            size = _bytes_of(rows.popleft())
            sent.bytes -= size
            self._bytes -= size
        if not rows:
            del self._sent[call_id]

    def behind(self, call_id: str, seq: int) -> tuple[str, list[ChunkRow]]:
        """The gateway of a call, and its chunks behind `seq`; none, if the next one is not kept any more."""
        sent = self._sent.get(call_id)
        if sent is None:
            return "", []
        rows = [row for row in sent.rows if row.seq + len(row.data) - 1 > seq]
        return sent.gateway, rows if rows and rows[0].seq <= seq + 1 else []

    def sweep(self, at: float) -> None:
        """Forget those that were silent for long."""
        while self._sent and at - next(iter(self._sent.values())).at > CHUNKS_KEPT_S:
            self._forget(next(iter(self._sent)))

    def _forget(self, call_id: str) -> None:
        if (sent := self._sent.pop(call_id, None)) is not None:
            self._bytes -= sent.bytes


def _bytes_of(row: ChunkRow) -> int:
    return ROW_BYTES + sum(map(sys.getsizeof, row.data))
