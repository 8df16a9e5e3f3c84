"""The methods that a function has, and what each costs one of which nothing is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.hybrid_histogram import HybridHistogram
from pilotlight_autoscaler.policy.prediction.minute_methods import (
    LEVELS,
    BusyForecast,
    BusyMinutes,
    FixedWarmth,
    MinuteMethod,
    PlannedWarmth,
)
from pilotlight_autoscaler.policy.prediction.prior_costs import UNKEPT, prior_of_learnt, prior_of_ttl
from pilotlight_autoscaler.policy.prediction.shadow_pool import NOTHING, ShadowCost

FIXED_MINUTES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 60, 120, 240)
QUANTILES = (0.5, 0.8, 0.95)
USUAL_MINUTES = (60, 240)
"""Ranges of the hybrid histogram."""
LEARNT = "learnt"


class MethodSet(NamedTuple):
    """By name."""

    methods: dict[str, MinuteMethod]
    priors: dict[str, ShadowCost]


def standard_methods(
    learnt: PlannedWarmth,
    worth: float,
    forecast: HoltForecast,
    seen: Sequence[Iterable[int]] = (),
) -> MethodSet:
    """All of them.

    Args:
        worth: of a cold start, in idle minutes.
        forecast: that of all `QUANTILES`.
        seen: idle times of each level of concurrency that were seen before, in minutes.
    """
    methods: dict[str, MinuteMethod] = {NOTHING: FixedWarmth(0)}
    busy = BusyMinutes(forecast)
    for quantile in QUANTILES:
        methods[f"forecast-{round(100 * quantile)}"] = BusyForecast(busy, quantile, learns=quantile == QUANTILES[0])
    priors = dict.fromkeys(methods, UNKEPT)
    for minutes in FIXED_MINUTES:
        methods[f"kept-{minutes}"] = FixedWarmth(minutes)
        priors[f"kept-{minutes}"] = prior_of_ttl(minutes)
    for minutes in USUAL_MINUTES:
        methods[f"usual-{minutes}"] = PlannedWarmth(_histograms(minutes, seen))
        priors[f"usual-{minutes}"] = prior_of_ttl(minutes)
    methods[LEARNT] = learnt
    priors[LEARNT] = prior_of_learnt(worth)
    return MethodSet(methods, priors)


def _histograms(minutes: int, seen: Sequence[Iterable[int]]) -> tuple[HybridHistogram, ...]:
    made = tuple(HybridHistogram(minutes) for _ in range(LEVELS))
    for histogram, times in zip(made, seen, strict=False):
        for idle in times:
            histogram.ended(idle)
    return made
