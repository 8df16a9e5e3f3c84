"""Keep-alive policies of other systems in the minute model, each with the source of its rule."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from pilotlight_autoscaler.policy.prediction.idle_times import (
    LONGEST_MINUTES,
    WarmWindow,
    bin_of,
    bins,
    warm_windows,
    worths_of,
)
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan
from pilotlight_autoscaler.simulator.minute_model import KeepAliveCost, MinuteSeries

TTL_MINUTES = (0, 1, 2, 3, 5, 7, 10, 13, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 180, 240)
LADDER = (1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60)
"""What a cost-aware TTL chooses from, in minutes."""
SAMPLES = 10
"""It begins with `UNKNOWN` until it has seen so many idle times."""
UNKNOWN = 10
KPA_TARGET = 0.7
KPA_GRACE_MINUTES = 0.5


class FixedTtl:
    """A container stays for so many minutes after each call."""

    def __init__(self, minutes: float) -> None:
        self._plan = KeepAlivePlan((WarmWindow(0.0, float(minutes)),))

    def plan(self) -> KeepAlivePlan:
        return self._plan

    def ended(self, minutes: float) -> None:
        """It learns nothing."""


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


class CostAwareTtl:
    """The TTL that would have cost least so far, if a cold start costs so many idle minutes."""

    def __init__(self, worth: float) -> None:
        self._worth = worth
        self._costs = dict.fromkeys(LADDER, 0.0)
        self._seen = 0

    def plan(self) -> KeepAlivePlan:
        known = self._seen >= SAMPLES
        minutes = min(LADDER, key=lambda ttl: (self._costs[ttl], ttl)) if known else UNKNOWN
        return KeepAlivePlan((WarmWindow(0.0, float(minutes)),))

    def ended(self, minutes: float) -> None:
        self._seen += 1
        for ttl in LADDER:
            self._costs[ttl] += min(minutes, ttl) + (self._worth if minutes > ttl else 0.0)


def knative(functions: Iterable[Sequence[float]]) -> KeepAliveCost:
    """Knative's KPA by its defaults (window 60 s, target 0.7, grace 30 s), over containers needed in each minute."""
    cold, idle = 0, 0.0
    for needed in functions:
        before = 0.0
        for now in needed:
            pods = math.ceil(before / KPA_TARGET)
            if now:
                cold += math.ceil(now) - min(math.ceil(now), pods)
                idle += max(0, pods - math.ceil(now))
            elif before:
                idle += pods + KPA_GRACE_MINUTES
            before = now
    return KeepAliveCost(cold, idle)


def with_known_law(series: Iterable[MinuteSeries], worth: float) -> KeepAliveCost:
    """What our rule costs if it knows each series' idle times from the beginning, but not their order.

    Nobody who learns can be expected to do better, by the same rule and from idle times alone.
    """
    cold, idle = 0, 0.0
    for each in series:
        masses = [0.0] * bins()
        for minutes in each.idle:
            if minutes <= LONGEST_MINUTES:
                masses[bin_of(minutes)] += 1.0
        longer = sum(minutes > LONGEST_MINUTES for minutes in each.idle)
        plan = KeepAlivePlan(warm_windows(worths_of(masses, longer + 1.0), worth))
        cold += 1 + sum(not plan.covers(minutes) for minutes in each.idle)
        idle += sum(map(plan.idle_minutes, (*each.idle, each.rest)))
    return KeepAliveCost(cold, idle)
