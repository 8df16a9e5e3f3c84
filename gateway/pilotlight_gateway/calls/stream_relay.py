"""The chunks of one stream on their way from its container to its caller: in order, and no more than are read.

And what else its caller is told, and its container of the journal.
"""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec import UNSET

from pilotlight_core.model.messages.call_messages import BYTES_AHEAD, LEAST_AHEAD, WINDOW, Grant, Window
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.calls.effects import Effect, HoldJournal, RelayChunks, ReportStage, SendControl
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.streams.stream_journal import StreamJournal, bytes_of

UNREAD_CHUNKS: Final = 256
UNREAD_BYTES: Final = 2 * 2**20
"""Chunks that the caller has not read: beyond either, the stream gets no `Window`."""
STEP: Final = LEAST_AHEAD
SMALL_CHUNK: Final = BYTES_AHEAD // WINDOW
"""Bytes. Streams of small ones go far ahead, and are told to go on half as often: telling costs more than a chunk."""
GAP_S = 10.0
"""So long the origin waits for chunks that were lost on their way: with a server of the bus, whose successor is there
in a second or two."""
ASK_AGAIN_S = 1.0
TOLD_AGAIN_S = 1.0
"""A stream whose state finds no memory, however often it is saved, is told so no more often."""


class StreamRelay:
    """Relays each chunk once, and tells the container to go on while the caller keeps up."""

    __slots__ = (
        "_asked_at", "_bytes", "_unread_bytes", "_unread_chunks", "_window_sent", "gap_until", "heard_seq", "last_seq",
    )  # fmt: skip

    def __init__(self) -> None:
        self.last_seq = 0
        """Of the last chunk that was relayed."""
        self.heard_seq = 0
        """Of the last one from the present container, which repeats those that were relayed before it began."""
        self._window_sent = 0
        self._unread_chunks = 0
        self._unread_bytes = 0
        self._bytes = 0
        """Of all chunks so far."""
        self.gap_until = inf
        """When the stream is given up, of which chunks were lost; inf: none was, as far as is known."""
        self._asked_at = -inf

    def relay(self, seq: int, data: tuple[bytes, ...], grant: Grant) -> list[Effect] | None:
        """The next chunks have come from the grant's container, `seq` the first; repeated ones add nothing.

        None: one was lost, and all behind it come again once they are asked for.
        """
        last = seq + len(data) - 1
        if last <= self.heard_seq:
            return []
        if seq > self.heard_seq + 1:
            return None
        self.heard_seq = last
        self.gap_until = inf
        if last <= self.last_seq:
            return self._go_on(grant)
        if seq <= self.last_seq:
            data = data[self.last_seq + 1 - seq :]
        relayed: Effect = RelayChunks(self.last_seq + 1, data)
        self.last_seq = last
        size = bytes_of(data)
        self._bytes += size
        self._unread_chunks += len(data)
        self._unread_bytes += size
        return [relayed, *self._go_on(grant)]

    def awaits(self, seq: int) -> bool:
        """Whether the chunk `seq` is the next one for the caller."""
        return seq == self.heard_seq + 1 and self.heard_seq == self.last_seq and self.gap_until == inf

    def ask_again(self, grant: Grant, at: float) -> list[Effect]:
        """Chunks were lost, as what has come shows: the agent sends what it has kept behind the last that was heard."""
        if self.gap_until == inf:
            self.gap_until = at + GAP_S
        elif at - self._asked_at < ASK_AGAIN_S:
            return []
        self._asked_at, self._window_sent = at, self.heard_seq
        return [SendControl(grant.node, Window(call_id=grant.call_id, upto=self.heard_seq, again=True))]

    def took(self, data: tuple[bytes, ...], grant: Grant | None) -> list[Effect]:
        """The next chunks for the caller have come, and were read at once."""
        self.heard_seq = self.last_seq = self.last_seq + len(data)
        self._bytes += bytes_of(data)
        return self._go_on(grant)

    def restart(self, after: int) -> None:
        """Another container goes on behind chunk `after`."""
        self.heard_seq = self._window_sent = after

    def was_read(self, chunks: int, size: int, grant: Grant | None) -> list[Effect]:
        """The caller has read so many chunks, of `size` bytes together; without a grant nobody sends more."""
        self._unread_chunks -= chunks
        self._unread_bytes -= size
        return self._go_on(grant)

    def _go_on(self, grant: Grant | None) -> list[Effect]:
        """Let the container send more, unless too much is unread."""
        ahead = self.heard_seq - self._window_sent
        if ahead < STEP // 2 or (ahead < STEP and self._bytes < SMALL_CHUNK * self.last_seq):
            return []
        if grant is None or self._unread_chunks > UNREAD_CHUNKS or self._unread_bytes > UNREAD_BYTES:
            return []
        self._window_sent = self.heard_seq
        return [SendControl(grant.node, Window(call_id=grant.call_id, upto=self.heard_seq))]


def is_resumable(call: PreparedCall) -> bool:
    """Whether the call is a stream that may go on elsewhere."""
    return call.version.spec.resumable is not UNSET and call.method.mode is Mode.GENERATOR


def journal_changed(
    journal: StreamJournal, call: PreparedCall, grant: Grant | None, at: float, *, was_closed: bool
) -> list[Effect]:
    """Ask for the memory that a call's journal wants now, and say when its stream cannot go on elsewhere any more."""
    effects: list[Effect] = []
    if bool(journal.closed) is not was_closed and grant is not None:
        # Before the memory is asked for: if there is none, the next word is that it is closed.
        effects.append(SendControl(grant.node, Window(call_id=grant.call_id, upto=0, movable=was_closed)))
    if (wanted := journal.wanted) != journal.room:
        journal.room = wanted
        effects.append(HoldJournal(wanted))
    if journal.closed and not was_closed and at - journal.told_at >= TOLD_AGAIN_S:
        journal.told_at = at
        effects += stage(call, "not_resumable", at, reason=journal.closed)
    return effects


def stage(call: PreparedCall, name: str, at: float, **detail: object) -> list[Effect]:
    """The caller of a stream is told that it has entered a stage."""
    return [ReportStage(name, (at - call.arrived_at) * 1000.0, detail)] if call.stream else []
