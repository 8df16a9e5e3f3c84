"""How often, and how many at a time, browsers may try to log in: whoever tries has shown nothing yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cachetools import LRUCache

from pilotlight_core.host.outbound.address_policy import Network
from pilotlight_gateway.limits.connections import is_in_networks, source_of
from pilotlight_gateway.limits.gcra import RateBucket, instant, rate

REMEMBERED = 8_192
OF_SOURCE = rate(1.0, 20.0)
AT_A_TIME, WAIT_AT_MOST = 8, 64


class LoginRefused(Exception):
    """It is tried too often."""


class LoginRates:
    """Counts logins by address. Proxies, which many come through, are `exempt`. `clock` is monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, exempt: tuple[Network, ...] = ()) -> None:
        self._clock = clock
        self._exempt = exempt
        self._buckets: LRUCache[str, RateBucket] = LRUCache(REMEMBERED)
        self._free = asyncio.Semaphore(AT_A_TIME)
        self._waiting = 0

    @asynccontextmanager
    async def taking(self, address: str) -> AsyncIterator[None]:
        """One try from an address, until the block ends.

        Raises:
            LoginRefused: there were too many lately, or there are at the moment.
        """
        self._count(address)
        if self._waiting >= WAIT_AT_MOST:
            raise LoginRefused("Too many log in at once: try again in a moment.")
        self._waiting += 1
        try:
            async with self._free:
                yield
        finally:
            self._waiting -= 1

    def _count(self, address: str) -> None:
        source = source_of(address)
        if not source or is_in_networks(address, self._exempt):
            return
        at = instant(self._clock())
        bucket = self._buckets.get(source)
        if bucket is None:
            bucket = self._buckets[source] = RateBucket(OF_SOURCE, at)
        if bucket.wait(OF_SOURCE.interval, at):
            raise LoginRefused("Somebody logs in too often from this address: try again in a minute.")
        bucket.take(OF_SOURCE.interval, at)
