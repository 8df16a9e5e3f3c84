"""Work that is done once for all who ask for the same while it is done, and for a moment afterwards.

It runs in the task of whoever asks first. If that one goes, the next one does it: no task outlives its asker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class WorkResult(NamedTuple, Generic[T]):
    """What came of it, for how many seconds it is kept, and how many bytes that costs."""

    value: T
    keep_s: float
    size: int = 0


@dataclass(kw_only=True)
class _KeptWork(Generic[T]):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    askers: int = 0
    expires_at: float = -inf
    size: int = 0
    value: T | None = None


class SharedWork(Generic[T]):
    """By key; at most so many results, and bytes of them, are kept. `clock` is monotonic seconds."""

    def __init__(self, *, at_most: int, clock: Callable[[], float], most_bytes: float = inf) -> None:
        self._at_most = at_most
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: dict[Hashable, _KeptWork[T]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: Hashable, work: Callable[[], Awaitable[WorkResult[T]]]) -> T:
        """The result for a key: a kept one, or that of `work`. Raises what that raises."""
        kept = self._kept.get(key)
        if kept is None:
            self._make_room()
            kept = self._kept[key] = _KeptWork()
        kept.askers += 1
        try:
            async with kept.lock:
                if kept.value is not None and self._clock() < kept.expires_at:
                    return kept.value
                kept.value = None
                kept.value, keep_s, kept.size = await work()
                kept.expires_at = self._clock() + keep_s
                return kept.value
        finally:
            kept.askers -= 1
            if kept.value is None and not kept.askers and self._kept.get(key) is kept:
                del self._kept[key]  # it has raised, or whoever asked has gone

    def _make_room(self) -> None:
        """For one more: what has expired goes, then the oldest that nobody waits for."""
        at = self._clock()
        self._kept = {key: one for key, one in self._kept.items() if one.askers or at < one.expires_at}
        size = sum(one.size for one in self._kept.values())
        for key in [key for key, one in self._kept.items() if not one.askers]:
            if len(self._kept) < self._at_most and size <= self._most_bytes:
                return
            size -= self._kept.pop(key).size
