"""The hybrid histogram: a function is kept from the least usual of its idle times to the longest usual one. Pure."""

from __future__ import annotations

from collections import deque
from itertools import accumulate

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
        self._squares = 0
        """The sum of the squares of all bins."""
        self._longest = 0
        """The last bin that has any."""
        self._last: deque[int] = deque(maxlen=20)

    def plan(self) -> KeepAlivePlan:
        start, end = self._window()
        return KeepAlivePlan((WarmWindow(start, end),))

    def ended(self, minutes: float) -> None:
        idle = int(minutes)
        self._last.append(idle)
        if idle < self._range:
            self._squares += 2 * self._bins[idle] + 1
            self._bins[idle] += 1
            self._inside += 1
            self._longest = max(self._longest, idle)
        else:
            self._outside += 1

    def _window(self) -> tuple[float, float]:
        seen = self._inside + self._outside
        if seen >= 2 and self._outside / seen >= 0.5:  # in place of its ARIMA model: the mean of the last ones
            mean = sum(self._last) / len(self._last)
            return 0.85 * mean, 1.15 * mean
        # Where bins differ enough: their standard deviation is twice their mean at least.
        if seen >= 2 and self._inside and self._squares * self._range >= 5 * self._inside**2:
            return 0.9 * self._quantile(0.05), 1.1 * (self._quantile(0.99) + 1)
        return 0.0, float(self._range)

    def _quantile(self, part: float) -> int:
        least = part * self._inside
        if part < 0.5:
            return next(minute for minute, total in enumerate(accumulate(self._bins)) if total >= least)
        total, minute = self._inside, self._longest
        while total - self._bins[minute] >= least:
            total -= self._bins[minute]
            minute -= 1
        return minute
