"""Keep-alive policies of other systems in the minute model, each with the source of its rule."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from pilotlight_autoscaler.policy.prediction.idle_times import (
    WarmWindow,
)
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan
from pilotlight_autoscaler.simulator.minutes.minute_model import KeepAliveCost, MinuteSeries

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
    """The least that anybody could be charged who knows how often each idle time comes, but not when.

    A container is there in the minute that ends an age if the calls that come in it are worth more than the minutes in
    which none comes. The first call of each series is cold in any case.
    """
    cold, idle = 0, 0.0
    for each in series:
        counts = Counter(each.idle)
        left, kept = len(each.idle) + (each.rest > 0), []
        for age in sorted(counts):
            left -= counts[age]
            if counts[age] * (worth - 0.5) > left:
                kept.append(age)
        warm = set(kept)
        cold += 1 + sum(count for age, count in counts.items() if age not in warm)
        idle += sum(count * bisect_left(kept, age) for age, count in counts.items()) + bisect_left(kept, each.rest + 1)
        idle += sum(count / 2 for age, count in counts.items() if age in warm)
    return KeepAliveCost(cold, idle)
