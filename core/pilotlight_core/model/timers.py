"""Timers: what becomes due when. A heap with lazy deletion: O(log n) to set, O(1) to clear."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LITTER = 64
"""Dead heap entries that are tolerated beyond one for each timer that is set."""


class Timers(Generic[K]):
    """At most one instant per key. Keys can be ordered: of those due at one instant the least comes first."""

    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, K]] = []

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: K) -> bool:
        return key in self._at

    def __iter__(self) -> Iterator[K]:
        """The keys that are set, in no order."""
        return iter(self._at)

    def set(self, key: K, at: float) -> None:
        """Let `key` become due at `at`, instead of when it was."""
        self._at[key] = at
        heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + LITTER:
            self._heap = [(instant, name) for name, instant in self._at.items()]
            heapify(self._heap)

    def at(self, key: K) -> float | None:
        """When `key` becomes due; None: never."""
        return self._at.get(key)

    def clear(self, key: K) -> None:
        """`key` does not become due."""
        self._at.pop(key, None)

    def next(self) -> float | None:
        """The earliest instant that is set."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, at: float) -> K | None:
        """The key that has been due for longest at `at`, which is cleared; None: none is."""
        instant = self.next()
        return self._pop() if instant is not None and instant <= at else None

    def due(self, at: float) -> list[K]:
        """The keys whose instant has come, earliest first; they are cleared."""
        keys = []
        while (instant := self.next()) is not None and instant <= at:
            keys.append(self._pop())
        return keys

    def _pop(self) -> K:
        _, key = heappop(self._heap)
        del self._at[key]
        return key
