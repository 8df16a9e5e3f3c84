"""How often functions are called, as gateways have counted: asked of each at most once a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from cachetools import LRUCache

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.tally.tally_window import FunctionWindow

MINUTES = 10
FRESH_S = 60.0
KNOWN = 1_000


class CountedWindows(Protocol):
    async def window(self, function: str, minutes: int = MINUTES) -> FunctionWindow: ...


class CallRates:
    """`clock`: monotonic seconds."""

    def __init__(self, counted: CountedWindows, clock: Callable[[], float] = time.monotonic) -> None:
        self._counted = counted
        self._clock = clock
        self._known: LRUCache[str, tuple[float, float]] = LRUCache(KNOWN)

    async def per_hour(self, functions: Sequence[str]) -> float:
        """Calls an hour of functions (`tenant:app.function`); 0: there are none, or nobody could say."""
        return sum([await self._of(function) for function in functions])

    async def _of(self, function: str) -> float:
        known, at = self._known.get(function), self._clock()
        if known is not None and at - known[0] < FRESH_S:
            return known[1]
        try:
            window = await self._counted.window(function, MINUTES)
            rate = window.tally.arrivals / window.seconds * 3_600.0
        except PilotlightError:
            rate = known[1] if known is not None else 0.0
        self._known[function] = (at, rate)
        return rate
