"""Alarms: what becomes due when. A lazy heap with O(log n) set and O(1) clear."""

from __future__ import annotations

import heapq

LITTER = 64
"""Dead heap entries that are tolerated beyond one for each alarm that is set."""


class Timers:
    """At most one instant per key."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: str) -> bool:
        return key in self._at

    def set(self, key: str, at: float) -> None:
        """Let `key` become due at `at`, instead of when it was."""
        self._at[key] = at
        heapq.heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + LITTER:
            self._heap = [(instant, name) for name, instant in self._at.items()]
            heapq.heapify(self._heap)

    def at(self, key: str) -> float | None:
        """When `key` becomes due; None: never."""
        return self._at.get(key)

    def clear(self, key: str) -> None:
        """`key` does not become due."""
        self._at.pop(key, None)

    def next(self) -> float | None:
        """The earliest instant that is set."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, at: float) -> list[str]:
        """The keys whose instant has come, earliest first; they are cleared."""
        keys = []
        while (instant := self.next()) is not None and instant <= at:
            _, key = heapq.heappop(self._heap)
            del self._at[key]
            keys.append(key)
        return keys
