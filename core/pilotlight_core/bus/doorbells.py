"""Messages that were announced and are not read yet.

A subscriber gets a message before it is stored, by the duration of a disk sync. A read at the ring of the bell may find
nothing, so it is repeated after growing pauses until as many messages are read as were announced; after two seconds the
rest, such as refused writes, are given up.
"""

from __future__ import annotations

PAUSES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)


class PendingReads:
    """The count of announced messages, and the pauses between reads."""

    __slots__ = ("_due", "_looks")

    def __init__(self) -> None:
        self._due = 0
        self._looks = 0

    def ring(self) -> None:
        self._due += 1
        self._looks = 0

    def read(self, count: int) -> None:
        self._due = max(0, self._due - count)

    @property
    def due(self) -> bool:
        return self._due > 0

    def pause(self) -> float | None:
        """Seconds until the next read; None if nothing is due. The call after the last pause gives up."""
        if not self._due:
            return None
        if self._looks == len(PAUSES_S):
            self._due = 0
            return None
        self._looks += 1
        return PAUSES_S[self._looks - 1]
