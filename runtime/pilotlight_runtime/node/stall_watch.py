"""Detecting that this process stood still, so that messages read then are not taken for fresh. Pure.

A message that waited in the socket meanwhile says "start within two seconds" of an instant that may be long past.
After a gap, messages count as received at the last instant at which the process was known to run, until everything
that may have waited has been read.
"""

from __future__ import annotations

GAP_S = 0.25
"""A tick comes every 20 ms; so late a one means a paused process or a starved machine."""


class StallWatch:
    """Call `tick` every few 10 ms, and `mark_fresh` when everything that had waited has been read."""

    def __init__(self, at: float) -> None:
        self._ticked_at = at
        self._stalled_at: float | None = None
        self.stalls = 0
        self.longest_s = 0.0

    def tick(self, at: float) -> bool:
        """Whether a gap has just ended."""
        gap_s, before_at = at - self._ticked_at, self._ticked_at
        self._ticked_at = at
        if gap_s <= GAP_S:
            return False
        self.stalls += 1
        self.longest_s = max(self.longest_s, gap_s)
        if self._stalled_at is None:
            self._stalled_at = before_at
        return True

    def received_at(self, at: float) -> float:
        """The earliest instant at which a message read now can have come."""
        if self._stalled_at is not None:
            return self._stalled_at
        return self._ticked_at if at - self._ticked_at > GAP_S else at

    def mark_fresh(self) -> None:
        """Messages read from here on have come after the gap."""
        self._stalled_at = None
