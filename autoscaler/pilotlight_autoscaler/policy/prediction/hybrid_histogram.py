"""The hybrid histogram: a function is kept from the least usual of its idle times to the longest usual one. Pure."""

from __future__ import annotations

import math
from collections import deque

from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan


class HybridHistogram:
    """The hybrid histogram of Shahrad et al. (ATC 2020, section 4.2): unload, prewarm, keep, by two quantiles.

    Args:
        minutes: the range of the histogram, in bins of one minute.
    """

    def __init__(self, minutes: int) -> None:
        self._range = minutes
        self._bins = [0] * minutes
        self._inside = self._outside = 0
        self._last: deque[int] = deque(maxlen=20)

    def plan(self) -> KeepAlivePlan:
        start, end = self._window()
        return KeepAlivePlan((WarmWindow(start, end),))

    def ended(self, minutes: float) -> None:
        idle = int(minutes)
        self._last.append(idle)
        if idle < self._range:
            self._bins[idle] += 1
            self._inside += 1
        else:
            self._outside += 1

    def _window(self) -> tuple[float, float]:
        seen = self._inside + self._outside
        if seen >= 2 and self._outside / seen >= 0.5:  # in place of its ARIMA model: the mean of the last ones
            mean = sum(self._last) / len(self._last)
            return 0.85 * mean, 1.15 * mean
        if seen >= 2 and self._inside:
            mean = self._inside / self._range
            spread = math.sqrt(sum((count - mean) ** 2 for count in self._bins) / self._range)
            if spread / mean >= 2.0:
                return 0.9 * self._quantile(0.05), 1.1 * (self._quantile(0.99) + 1)
        return 0.0, float(self._range)

    def _quantile(self, part: float) -> int:
        total = 0
        for minute, count in enumerate(self._bins):
            total += count
            if total >= part * self._inside:
                return minute
        return self._range - 1
