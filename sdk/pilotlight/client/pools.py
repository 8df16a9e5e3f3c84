"""Many small pools of connections in place of a large one.

A pool of httpx's looks at all of its connections with each request, so what one costs grows with how many are under
way: with 256 of them in one pool ten times as much as in pools of 16.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

SIZE = 16
"""Connections of one."""
POOLS_AT_MOST = 40


class Closes(Protocol):
    """What a pool has to be able to do."""

    def aclose(self) -> Awaitable[None]: ...


T = TypeVar("T", bound=Closes)


@dataclass
class _Pool(Generic[T]):
    client: T
    busy: int = 0
    """Requests under way."""
    idle_since: float = 0.0


class Pools(Generic[T]):
    """Made as they are needed, by `make`, and closed once they were idle for `idle_s`."""

    def __init__(self, make: Callable[[], T], *, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._idle_s = idle_s
        self._clock = clock
        self._pools: list[_Pool[T]] = []

    def __len__(self) -> int:
        return len(self._pools)

    @contextmanager
    def one(self) -> Iterator[T]:
        """A pool for one request: the first that has room, so that the last ones fall idle when there is less to do."""
        pool = next((pool for pool in self._pools if pool.busy < SIZE), None)
        if pool is None and len(self._pools) < POOLS_AT_MOST:
            pool = _Pool(self._make())
            self._pools.append(pool)
        if pool is None:
            pool = min(self._pools, key=lambda pool: pool.busy)
        pool.busy += 1
        try:
            yield pool.client
        finally:
            pool.busy -= 1
            pool.idle_since = self._clock()

    async def tidy(self) -> None:
        """Close what is not needed any more: its connections would stay open though the other side has left."""
        while len(self._pools) > 1 and not (last := self._pools[-1]).busy:
            if self._clock() - last.idle_since < self._idle_s:
                return
            self._pools.pop()
            await last.client.aclose()

    async def aclose(self) -> None:
        """Close them all."""
        while self._pools:
            await self._pools.pop().client.aclose()
