"""How often sessions are opened: each is a write to the registry. Each gateway counts its own."""

from __future__ import annotations

from collections.abc import Callable

from cachetools import LRUCache

from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.limits.gcra import PS, RateBucket, instant, rate

REMEMBERED = 8_192
"""Keys and sources that are counted; who is forgotten has a full burst."""
OF_KEY = rate(1 / 3, 20.0)
"""A person logs in now and then; a program keeps its session."""
OF_SOURCE = rate(10.0, 200.0)
"""An address may be that of a dashboard, over which many log in."""


class SessionRates:
    """Counts openings by API key, and by the address that they come from. `clock` is monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: LRUCache[tuple[str, str], RateBucket] = LRUCache(REMEMBERED)

    def take_opening(self, key: str, source: str) -> None:
        """Count one by a key. A key that may open none takes nothing of its address.

        Raises:
            TooMuch: says when to come again.
        """
        at = instant(self._clock())
        mine, shared = self._bucket("key", key, at), self._bucket("source", source, at)
        if wait := mine.wait(OF_KEY.interval, at):
            raise TooMuch("This API key opens sessions too often: go on with one that is open.", retry_after=wait / PS)
        _check_source(shared, at)
        mine.take(OF_KEY.interval, at)
        shared.take(OF_SOURCE.interval, at)

    def take_exchange(self, source: str) -> None:
        """Count one by a code; as `take_opening`."""
        at = instant(self._clock())
        shared = self._bucket("source", source, at)
        _check_source(shared, at)
        shared.take(OF_SOURCE.interval, at)

    def _bucket(self, kind: str, name: str, at: int) -> RateBucket:
        found = self._buckets.get((kind, name))
        if found is None:
            found = self._buckets[kind, name] = RateBucket(OF_KEY if kind == "key" else OF_SOURCE, at)
        return found


def _check_source(bucket: RateBucket, at: int) -> None:
    if wait := bucket.wait(OF_SOURCE.interval, at):
        raise TooMuch("Too many sessions are opened from this address: wait a moment.", retry_after=wait / PS)
