"""The calls of one function, minute by minute, in the order in which a simulation takes them. Pure.

Instants are seconds from the beginning, durations the seconds for which a call holds its slot.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from random import Random
from typing import Final, Protocol

MINUTE_S: Final = 60.0
SHORTEST_S: Final = 1e-3
"""A call takes a millisecond at least."""

TimedCall = tuple[float, float]
"""When it comes, and how long it takes."""


class FunctionTraffic(Protocol):
    def next_minute(self, after: int) -> int | None:
        """The first minute with a call, from the minute `after` on; None: there is none."""
        ...

    def count(self, minute: int) -> int:
        """Its calls in a minute."""
        ...

    def mean_s(self, minute: int) -> float:
        """How long those take on average."""
        ...

    def calls(self, minute: int) -> list[TimedCall]:
        """They themselves, the earliest first. To be asked for in the order of minutes."""
        ...


class CountedCalls:
    """`FunctionTraffic` of counts by minute: calls come at any time of their minute, and last exponentially."""

    def __init__(self, counts: Mapping[int, int], duration_s: float, seed: str) -> None:
        self._minutes = array("l", sorted(minute for minute, count in counts.items() if count > 0))
        self._counts = array("l", (counts[minute] for minute in self._minutes))
        self._duration_s = max(duration_s, SHORTEST_S)
        self._dice = Random(seed)

    def next_minute(self, after: int) -> int | None:
        place = bisect_left(self._minutes, after)
        return self._minutes[place] if place < len(self._minutes) else None

    def count(self, minute: int) -> int:
        place = bisect_left(self._minutes, minute)
        return self._counts[place] if place < len(self._minutes) and self._minutes[place] == minute else 0

    def mean_s(self, minute: int) -> float:  # noqa: ARG002 - it is the same in each minute
        return self._duration_s

    def calls(self, minute: int) -> list[TimedCall]:
        draw, rate, start = self._dice.random, 1.0 / self._duration_s, minute * MINUTE_S
        instants = sorted([start + MINUTE_S * draw() for _ in range(self.count(minute))])
        # As `Random.expovariate` does, in place: most of a day's numbers are drawn here.
        return [(at, max(SHORTEST_S, -math.log(1.0 - draw()) / rate)) for at in instants]


class RecordedCalls:
    """`FunctionTraffic` of calls whose instants and durations are known."""

    def __init__(self, calls: list[TimedCall]) -> None:
        calls = sorted(calls)
        self._instants = array("d", (at for at, _ in calls))
        self._durations = array("d", (max(SHORTEST_S, duration_s) for _, duration_s in calls))

    def next_minute(self, after: int) -> int | None:
        place = bisect_left(self._instants, after * MINUTE_S)
        return int(self._instants[place] // MINUTE_S) if place < len(self._instants) else None

    def count(self, minute: int) -> int:
        first, beyond = self._places(minute)
        return beyond - first

    def mean_s(self, minute: int) -> float:
        first, beyond = self._places(minute)
        return sum(self._durations[first:beyond]) / max(1, beyond - first)

    def calls(self, minute: int) -> list[TimedCall]:
        first, beyond = self._places(minute)
        return list(zip(self._instants[first:beyond], self._durations[first:beyond], strict=True))

    def _places(self, minute: int) -> tuple[int, int]:
        start = minute * MINUTE_S
        return bisect_left(self._instants, start), bisect_left(self._instants, start + MINUTE_S)
