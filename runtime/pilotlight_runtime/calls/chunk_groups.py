"""Chunks that wait for the end of the loop's turn, so that those for one gateway go to it in one message.

What a guest has written in the meantime comes with one read, and so do the chunks of many streams: a message for each
costs agent and gateway more than the chunks do. Each keeps its number, and those of one stream their order.
"""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import ChunkGroup, ChunkRow

GROUP_CHUNKS = 64
GROUP_BYTES = 32 * 1024
"""Of one message: from either on it goes at once, so that the gateway works on it while the agent goes on."""


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
