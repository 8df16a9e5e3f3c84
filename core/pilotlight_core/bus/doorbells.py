"""What was heard of and is not read yet.

A message reaches subscribers an instant before it is stored: by as long as a sync of the disk takes. Whoever reads
when the bell rings may find nothing, so it looks again after growing pauses, until it has read as many messages as it
has heard of. What never comes (a write that was refused) is given up after two seconds. Pure.
"""

from __future__ import annotations

PAUSES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)


class PendingReads:
    """Counts them."""

    __slots__ = ("_due", "_looks")

    def __init__(self) -> None:
        self._due = 0
        self._looks = 0

    def ring(self) -> None:
        """A message was heard of."""
        self._due += 1
        self._looks = 0

    def read(self, count: int) -> None:
        """So many were read."""
        self._due = max(0, self._due - count)

    @property
    def due(self) -> bool:
        """Whether there are some that were not read."""
        return self._due > 0

    def pause(self) -> float | None:
        """Seconds until the next look for them; None if none are due. The one after the last gives them up."""
        if not self._due:
            return None
        if self._looks == len(PAUSES_S):
            self._due = 0
            return None
        self._looks += 1
        return PAUSES_S[self._looks - 1]
