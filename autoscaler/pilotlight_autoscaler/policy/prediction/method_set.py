"""The methods that a function has, and what each costs one of which nothing is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pilotlight_autoscaler.policy.prediction.call_chances import LEVELS
from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.hybrid_histogram import HybridHistogram
from pilotlight_autoscaler.policy.prediction.minute_methods import (
    BusyForecast,
    BusyMinutes,
    FixedWarmth,
    LikelyWarmth,
    MinuteMethod,
    PlannedWarmth,
)
from pilotlight_autoscaler.policy.prediction.prior_costs import UNKEPT, prior_of_likely, prior_of_ttl
from pilotlight_autoscaler.policy.prediction.shadow_pool import LIKELY, NOTHING, ShadowCost

FIXED_MINUTES = (2, 5, 10, 20, 60, 240)
QUANTILES = (0.5, 0.8, 0.95)
USUAL_MINUTES = 240
"""Range of the hybrid histogram."""
USUAL = f"usual-{USUAL_MINUTES}"


class MethodSet(NamedTuple):
    """By name."""

    methods: dict[str, MinuteMethod]
    priors: dict[str, ShadowCost]


def standard_methods(
    likely: LikelyWarmth,
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
    methods[USUAL] = PlannedWarmth(_histograms(seen))
    priors[USUAL] = prior_of_ttl(USUAL_MINUTES)
    methods[LIKELY] = likely
    priors[LIKELY] = prior_of_likely(worth)
    return MethodSet(methods, priors)


def _histograms(seen: Sequence[Iterable[int]]) -> tuple[HybridHistogram, ...]:
    made = tuple(HybridHistogram(USUAL_MINUTES) for _ in range(LEVELS))
    for histogram, times in zip(made, seen, strict=False):
        for idle in times:
            histogram.ended(idle)
    return made
