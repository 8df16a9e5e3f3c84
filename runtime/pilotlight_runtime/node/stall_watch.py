"""Noticing that this process stood still, so that what it reads then is not taken for fresh. Pure.

What waited in the socket meanwhile says "start within two seconds" of an instant that may be long past. After a gap,
messages therefore count as received right after the last instant at which the process was known to run, until
everything that may have been waiting has been read.
"""

from __future__ import annotations

GAP_S = 0.25
"""A tick comes every 20 ms; so late a one means a paused process or a starved machine."""


class StallWatch:
    """`tick` each few 10 ms; `fresh` when all that had been waiting was read."""

    def __init__(self, at: float) -> None:
        self._ticked = at
        self._stalled_at: float | None = None
        self.stalls = 0
        self.longest = 0.0

    def tick(self, at: float) -> bool:
        """Whether a gap has just ended."""
        gap, before = at - self._ticked, self._ticked
        self._ticked = at
        if gap <= GAP_S:
            return False
        self.stalls += 1
        self.longest = max(self.longest, gap)
        if self._stalled_at is None:
            self._stalled_at = before
        return True

    def received(self, at: float) -> float:
        """The earliest instant at which what is read now can have come."""
        if self._stalled_at is not None:
            return self._stalled_at
        return self._ticked if at - self._ticked > GAP_S else at

    def fresh(self) -> None:
        """What is read from here on has come after the gap."""
        self._stalled_at = None
