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

from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan, KeepAlivePolicy, LearntKeepAlive


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


def learnt_costs(series: Iterable[MinuteSeries], worths: Sequence[float]) -> list[KeepAliveCost]:
    """What `LearntKeepAlive` costs for each worth of a cold start, learning once for all of them."""
    cold, idle_minutes = [0] * len(worths), [0.0] * len(worths)
    unknown = LearntKeepAlive(worths).plans()
    for each in series:
        policy, plans = LearntKeepAlive(worths), unknown
        cold = [count + 1 for count in cold]
        for idle in each.idle:
            _add(plans, idle, cold, idle_minutes)
            policy.ended(idle)
            plans = policy.plans()
        for place, plan in enumerate(plans):
            idle_minutes[place] += plan.idle_minutes(each.rest)
    return [KeepAliveCost(*both) for both in zip(cold, idle_minutes, strict=True)]


def _add(plans: Sequence[KeepAlivePlan], idle: int, cold: list[int], idle_minutes: list[float]) -> None:
    for place, plan in enumerate(plans):
        cold[place] += not plan.covers(idle)
        idle_minutes[place] += plan.idle_minutes(idle)
