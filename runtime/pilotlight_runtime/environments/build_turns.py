"""Turns of builders: a tenant has one at a time, and next is the one that has had least of late.

A turn may last ten minutes, so what counts is not who came first: a tenant that builds again and again waits behind all
that have hardly built anything, but no longer than it has built. The line is bounded, and so is a tenant's part of it:
where it is full, whoever has most there gives up its last place to one that has fewer.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

AT_ONCE = 2
"""Turns at the same time, at the most: each has a builder's memory."""
MOST_WAITING = 64
"""Those of all tenants that wait for a turn."""
FULL = f"{MOST_WAITING} wait for their turn already, which is the most"
MOST_OF_TENANT = 16
"""Those of one tenant."""
HALF_LIFE_S = 600.0
"""Of what a tenant has had."""
MOST_TENANTS = 1024
"""Of which it is remembered."""


class NoTurn(Exception):
    """The line is full; says whose."""


class WaitingTurn(NamedTuple):
    """Somebody waits for a turn."""

    given: asyncio.Future[None]
    since: float


class BuildTurns:
    """`clock` gives seconds; `at_once` turns are held at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, at_once: int = AT_ONCE) -> None:
        self._clock = clock
        self._at_once = at_once
        self._lines: dict[str, deque[WaitingTurn]] = {}
        """By tenant, in the order in which each came first."""
        self._holding: set[str] = set()
        self._had: dict[str, tuple[float, float]] = {}
        """By tenant: seconds, and when they were counted."""

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum(map(len, self._lines.values()))

    @property
    def _longest(self) -> str:
        """The tenant with most places, of some."""
        return max(self._lines, key=lambda name: len(self._lines[name]))

    def has_room(self, tenant: str) -> bool:
        """Whether there is a place, or a tenant has more of them than this one would have."""
        own = len(self._lines.get(tenant, ()))
        return self.waiting < MOST_WAITING or len(self._lines[self._longest]) > own + 1

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it during the block.

        Raises:
            NoTurn: too many wait.
        """
        await self._wait(tenant)
        begun_at = self._clock()
        try:
            yield
        finally:
            self._note(tenant, self._clock() - begun_at)
            self._holding.discard(tenant)
            self._give()

    async def _wait(self, tenant: str) -> None:
        line = self._lines.setdefault(tenant, deque())
        if len(line) >= MOST_OF_TENANT:
            raise NoTurn(f"{MOST_OF_TENANT} of yours wait for their turn already, which is the most")
        if not self.has_room(tenant):
            if not line:
                del self._lines[tenant]
            raise NoTurn(FULL)
        if self.waiting >= MOST_WAITING:
            self._refuse_last(self._longest)
        mine = WaitingTurn(asyncio.get_running_loop().create_future(), self._clock())
        line.append(mine)
        self._give()
        try:
            await mine.given
        except BaseException:
            given = mine.given
            if given.done() and not given.cancelled() and given.exception() is None:  # it was given a moment ago
                self._holding.discard(tenant)
            else:
                self._leave(tenant, mine)
            self._give()
            raise

    def _refuse_last(self, tenant: str) -> None:
        """The last place of a tenant is another's."""
        last = self._lines[tenant][-1]
        self._leave(tenant, last)
        if not last.given.done():
            last.given.set_exception(NoTurn(FULL))

    def _give(self) -> None:
        """Give turns to whoever is next, while there are some."""
        while len(self._holding) < self._at_once:
            # Of equals the one that came first.
            ready = [tenant for tenant in self._lines if tenant not in self._holding]
            if not ready:
                return
            at = self._clock()
            tenant = min(ready, key=lambda name: self._had_by(name, at) - (at - self._lines[name][0].since))
            following = self._lines[tenant][0]
            self._leave(tenant, following)
            if not following.given.done():
                self._holding.add(tenant)
                following.given.set_result(None)

    def _leave(self, tenant: str, one: WaitingTurn) -> None:
        line = self._lines.get(tenant)
        if line is not None and one in line:
            line.remove(one)
            if not line:
                del self._lines[tenant]

    def _had_by(self, tenant: str, at: float) -> float:
        seconds, counted_at = self._had.get(tenant, (0.0, at))
        return float(seconds * 0.5 ** ((at - counted_at) / HALF_LIFE_S))

    def _note(self, tenant: str, seconds: float) -> None:
        at = self._clock()
        had = self._had_by(tenant, at) + seconds
        self._had.pop(tenant, None)
        self._had[tenant] = had, at
        if len(self._had) > MOST_TENANTS:
            del self._had[next(iter(self._had))]
