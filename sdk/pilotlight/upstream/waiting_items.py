"""Which calls go in the next request. Pure: instants are arguments, in seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class WaitingItems(Generic[T]):
    """Calls in their order; a request takes up to `size` of them, and the first waits `wait_s` for others at most."""

    def __init__(self, size: int, wait_s: float) -> None:
        self.size = size
        self._wait_s = wait_s
        self._items: deque[tuple[T, float]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: T, at: float) -> None:
        self._items.append((item, at))

    def add_again(self, items: Sequence[T], at: float) -> None:
        """Put back what has not run: it goes before everything else, and waits for nothing."""
        self._items.extendleft((item, at - self._wait_s) for item in reversed(items))

    def discard(self, item: T) -> None:
        """Nobody waits for it any more. The oldest, whose time is up first, is found at once."""
        for index, (one, _) in enumerate(self._items):
            if one is item:
                del self._items[index]
                return

    def due_in(self, at: float) -> float | None:
        """The seconds until there is a request; None: nothing waits."""
        if not self._items:
            return None
        return 0.0 if len(self._items) >= self.size else max(0.0, self._items[0][1] + self._wait_s - at)

    def take(self, at: float) -> list[T]:
        """What goes in a request now; [] while the first waits for others."""
        if self.due_in(at) != 0.0:
            return []
        return [self._items.popleft()[0] for _ in range(min(self.size, len(self._items)))]
