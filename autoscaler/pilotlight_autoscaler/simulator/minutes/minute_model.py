"""The minute model: what a keep-alive costs over minutes in which a function was called. Pure.

Calls take no time, loads neither, and all calls of a minute come at its beginning (the model of Shahrad et al., ATC
2020). Where a function needs several containers, each level of concurrency is a series of its own: the second container
is called in the minutes that need two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePolicy


class MinuteSeries(NamedTuple):
    """The minutes of one function, or of one level of its concurrency."""

    idle: tuple[int, ...]
    """From each minute with a call to the next one."""
    rest: int
    """From the last one to the end."""
    calls: int


class KeepAliveCost(NamedTuple):
    """What a keep-alive cost, over one or more series."""

    cold: int
    """Calls that found no container; the first one of each series is one."""
    idle_minutes: float
    """In which containers waited for a call."""
    starts: int = 0
    """Of containers, those that no call waited for included; 0: nobody counted."""


def series_of(counts: Sequence[float]) -> MinuteSeries | None:
    """The series of a function with so many calls in each minute; None without any."""
    called = [minute for minute, count in enumerate(counts) if count > 0]
    if not called:
        return None
    idle = tuple(after - before for before, after in pairwise(called))
    return MinuteSeries(idle, len(counts) - 1 - called[-1], round(sum(counts)))


def levels_of(containers: Sequence[float]) -> Iterator[MinuteSeries]:
    """The series of each level of a function that needs so many containers in each minute; a minute counts once."""
    for level in range(math.ceil(max(containers, default=0.0))):
        found = series_of([float(needed > level) for needed in containers])
        if found is not None:
            yield found


def cost_of(series: Iterable[MinuteSeries], new: Callable[[], KeepAlivePolicy]) -> KeepAliveCost:
    """What a policy costs; `new` makes one for each series."""
    cold, idle_minutes = 0, 0.0
    for each in series:
        policy = new()
        cold += 1
        for idle in each.idle:
            plan = policy.plan()
            cold += not plan.covers(idle)
            idle_minutes += plan.idle_minutes(idle)
            policy.ended(idle)
        idle_minutes += policy.plan().idle_minutes(each.rest)
    return KeepAliveCost(cold, idle_minutes)


def ttl_cost_of(series: Iterable[MinuteSeries], minutes: int) -> KeepAliveCost:
    """What a time to live costs, charged as `minute_replay` does: whole minutes, and half of one that is used."""
    cold, idle_minutes = 0, 0.0
    for each in series:
        missed = sum(idle > minutes for idle in each.idle)
        cold += 1 + missed
        idle_minutes += missed * minutes + sum(idle - 0.5 for idle in each.idle if idle <= minutes)
        idle_minutes += min(minutes, each.rest)
    return KeepAliveCost(cold, idle_minutes, cold)
