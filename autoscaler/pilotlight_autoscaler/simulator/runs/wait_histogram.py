"""Durations counted in bins of 2 %, so that percentiles of any number of calls need no list of them. Pure."""

from __future__ import annotations

import math

LEAST_S = 1e-3
"""What is shorter counts as nothing."""
_LOG_STEP = math.log(1.02)


class WaitHistogram:
    """How long calls waited."""

    def __init__(self) -> None:
        self.calls = 0
        self.total_s = 0.0
        self._none = 0
        self._bins: dict[int, int] = {}

    def observe(self, wait_s: float, calls: int = 1) -> None:
        """So many calls waited for so long."""
        self.calls += calls
        if wait_s < LEAST_S:
            self._none += calls
            return
        self.total_s += wait_s * calls
        place = int(math.log(wait_s / LEAST_S) / _LOG_STEP)
        self._bins[place] = self._bins.get(place, 0) + calls

    def percentile(self, percent: float) -> float:
        """Seconds in which so many per cent of the calls had their turn, to 2 %; 0.0 without calls."""
        left = self.calls * percent / 100.0 - self._none
        if left <= 0:
            return 0.0
        place = 0
        for place in sorted(self._bins):
            left -= self._bins[place]
            if left <= 1e-9:
                break
        return LEAST_S * math.exp((place + 0.5) * _LOG_STEP)

    def add(self, other: WaitHistogram) -> None:
        """Count what the other counts too."""
        self.calls += other.calls
        self.total_s += other.total_s
        self._none += other._none
        for place, calls in other._bins.items():
            self._bins[place] = self._bins.get(place, 0) + calls
