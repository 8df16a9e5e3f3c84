"""The journal of one resumable stream: what its next container needs, if this one is lost.

It has the state of the last checkpoint, the number of the event that it stands behind, and a mark of each event that
was relayed since, of the last ones the event itself. The next container produces those again; each has to be the one
that the caller has, and is not sent.
Bounded: beyond its room the journal is closed, and the stream is resumable no more until a checkpoint fits.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Final

from pilotlight_core.model.messages.call_messages import ResumePoint
from pilotlight_core.model.streams.resuming import JOURNAL_BYTES, MARK_BYTES

STEP_BYTES: Final = 16 * 1024
"""Room is asked for in steps of so many bytes."""
MOST_BYTES: Final = JOURNAL_BYTES
FRESH_BYTES: Final = 4 * 1024
"""Of events that are kept themselves: an engine saves a state for each 32 small ones."""


class StreamJournal:
    """`room` is what it holds of the gateway's memory; whoever changes it by `wanted` tells `grant` or `close`."""

    __slots__ = (
        "_after",
        "_fresh",
        "_fresh_bytes",
        "_is_charged",
        "_last",
        "_lost_s",
        "_marks",
        "_since",
        "_size",
        "_state",
        "_took_s",
        "closed",
        "room",
        "told_at",
    )

    def __init__(self) -> None:
        self._after = self._last = 0
        """The event that the state stands behind, and the last one that was relayed."""
        self._state = b""
        self._marks: list[bytes] = []
        """Of the events behind the state, but for the last ones."""
        self._fresh: list[bytes] = []
        """These themselves: most are behind the state of a checkpoint before their marks are needed."""
        self._fresh_bytes = 0
        self._size = 0
        """Of the state and of all marks, those that are not made yet too."""
        self._took_s = 0.0
        """How long what came behind the state took the first time."""
        self._since = 0.0
        """When its present container had begun, or had caught up with, what comes next."""
        self._lost_s = 0.0
        """For how long a container may have gone on unheard when it fell silent, which stays billed there, less what
        those behind it have done."""
        self._is_charged = False
        self.closed = ""
        """Why the stream cannot go on elsewhere; "": it can."""
        self.room = 0
        self.told_at = -math.inf
        """When its caller was told last that it is closed."""

    @property
    def size(self) -> int:
        """Bytes of what it has to keep, at the least."""
        return self._size

    @property
    def wanted(self) -> int:
        """The room that it should have now."""
        return -(-(self._size + self._fresh_bytes) // STEP_BYTES) * STEP_BYTES

    @property
    def is_settled(self) -> bool:
        """Whether its room is the one that it wants."""
        return self.room - STEP_BYTES < self._size + self._fresh_bytes <= self.room

    def begin(self, at: float) -> None:
        """A container has begun."""
        self._since = at

    def note(self, seq: int, data: tuple[bytes, ...], at: float) -> None:
        """The next events are relayed, `seq` the number of the first."""
        self._last = seq + len(data) - 1
        self._took_s += at - self._since
        self._pass(at)
        if self.closed:
            return
        self._fresh += data
        self._fresh_bytes += bytes_of(data)
        self._size += MARK_BYTES * len(data)
        if self._fresh_bytes > FRESH_BYTES:
            self._marks += map(_mark, self._fresh)
            self._fresh, self._fresh_bytes = [], 0
        if self._size > MOST_BYTES:
            self.close(f"more than {MOST_BYTES} bytes have to be kept since the last checkpoint, at event {self._last}")

    def save(self, seq: int, state: bytes, at: float) -> None:
        """The function has saved its state behind the event `seq`, the last one of those that came."""
        if seq < self._after or seq > self._last or (self.closed and seq != self._last):
            return
        self._forget(seq - self._after)
        self._after, self._state, self.closed = seq, state, ""
        self._size = len(state) + MARK_BYTES * (len(self._marks) + len(self._fresh))
        if seq == self._last:  # else it repeats what took longer the first time
            self._took_s = 0.0
            self._pass(at)

    def note_caught_up(self, at: float) -> None:
        """Its container has produced again what was relayed."""
        self._since = at

    def note_silence(self, at: float, most_s: float) -> None:
        """Its container may have gone on unheard, and nobody takes that off the bill: `most_s` seconds at most, which
        is when its function is ended.
        """
        self._lost_s = max(self._lost_s, min(at - self._since, most_s))

    def repeats(self, seq: int, data: bytes) -> bool:
        """Whether an event that came again is the one that was relayed, as far as that is known."""
        place = seq - self._after - 1
        if self.closed or place < 0:
            return True
        if place < len(self._marks):
            return self._marks[place] == _mark(data)
        place -= len(self._marks)
        return place < len(self._fresh) and self._fresh[place] == data

    def charge_repeats(self) -> None:
        """A container was lost by its function's own doing: it could do so to work for nothing as it repeats."""
        self._is_charged = True

    def close(self, why: str) -> None:
        """The stream cannot go on elsewhere, until the next checkpoint."""
        self.closed = why
        self._state, self._marks, self._fresh = b"", [], []
        self._fresh_bytes = self._size = 0

    def point(self, sent: int, *, resumed: bool = False, is_last: bool = False) -> ResumePoint:
        """Where the next container begins, if the caller has the events up to `sent`; the others as it has them."""
        repeat_s = 0.0 if self._is_charged else self._lost_s + (self._took_s if sent > self._after else 0.0)
        return ResumePoint(
            after=self._after, state=self._state, sent=sent, repeat_ms=repeat_s * 1e3, resumed=resumed,
            is_last=is_last, fell_silent=self._lost_s > 0.0 and not self._is_charged,
        )  # fmt: skip

    def _pass(self, at: float) -> None:
        """What its container has done since was free there, if another one may have done it unheard."""
        if self._lost_s:
            self._lost_s = max(0.0, self._lost_s - (at - self._since))
        self._since = at

    def _forget(self, count: int) -> None:
        """The first events are in the state."""
        fresh = count - len(self._marks)
        del self._marks[:count]
        if fresh > 0:
            self._fresh_bytes -= sum(map(len, self._fresh[:fresh]))
            del self._fresh[:fresh]


def bytes_of(events: tuple[bytes, ...]) -> int:
    """Of events together; most come alone."""
    return len(events[0]) if len(events) == 1 else sum(map(len, events))


def _mark(data: bytes) -> bytes:
    return blake2b(data, digest_size=MARK_BYTES).digest()
