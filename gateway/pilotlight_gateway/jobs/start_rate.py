"""How fast the jobs of a flow start, from which waiting times follow. Pure; instants are monotonic seconds."""

from __future__ import annotations

from collections import deque

STARTS = 64
"""Starts that count."""
RECENT_S = 120.0
"""Older starts do not count."""


class StartRate:
    """The last starts of a flow."""

    __slots__ = ("_starts",)

    def __init__(self) -> None:
        self._starts: deque[float] = deque(maxlen=STARTS)

    def started(self, at: float) -> None:
        self._starts.append(at)

    def wait(self, position: int, at: float) -> float | None:
        """Seconds until a job starts that has `position` jobs before it; None: not known."""
        recent = [start for start in self._starts if at - start <= RECENT_S]
        if len(recent) < 2:
            return None
        return (position + 1) * (at - recent[0]) / len(recent)
