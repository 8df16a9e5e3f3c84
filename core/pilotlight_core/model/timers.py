"""Timers by key. A heap with lazy deletion: O(log n) to set, O(1) to clear."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LITTER = 64
"""Cleared heap entries that are tolerated beyond one per set timer."""


class Timers(Generic[K]):
    """At most one instant per key. Keys are ordered: of those due at the same instant the least comes first."""

    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, K]] = []

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: K) -> bool:
        return key in self._at

    def __iter__(self) -> Iterator[K]:
        """The set keys, in no order."""
        return iter(self._at)

    def set(self, key: K, at: float) -> None:
        """Make `key` due at `at`, instead of when it was."""
        self._at[key] = at
        heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + LITTER:
            self._heap = [(instant, name) for name, instant in self._at.items()]
            heapify(self._heap)

    def at(self, key: K) -> float | None:
        """When `key` is due; None: never."""
        return self._at.get(key)

    def clear(self, key: K) -> None:
        self._at.pop(key, None)

    def next(self) -> float | None:
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, at: float) -> K | None:
        """Remove and return the key that has been due longest at `at`; None if none is due."""
        instant = self.next()
        return self._pop() if instant is not None and instant <= at else None

    def due(self, at: float) -> list[K]:
        """Remove and return the keys due at `at`, earliest first."""
        keys = []
        while (instant := self.next()) is not None and instant <= at:
            keys.append(self._pop())
        return keys

    def _pop(self) -> K:
        _, key = heappop(self._heap)
        del self._at[key]
        return key
