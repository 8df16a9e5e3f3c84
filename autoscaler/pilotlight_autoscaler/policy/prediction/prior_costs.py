"""What methods cost a function of which nothing is known: one idle time of the prior of `idle_times`. Pure."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from pilotlight_autoscaler.policy.prediction.call_chances import PRIOR_ODDS, least_odds
from pilotlight_autoscaler.policy.prediction.idle_times import prior_of_minutes
from pilotlight_autoscaler.policy.prediction.shadow_pool import ShadowCost

UNKEPT = ShadowCost(0.0, sum(prior_of_minutes()))
"""Of a method that keeps nothing before it knows more: each idle time that ends does so with a cold start."""
ORDERED_ODDS = sorted(PRIOR_ODDS[1:])
"""Of all ages, to count those that pay."""


@cache
def prior_of_ttl(minutes: int) -> ShadowCost:
    """Of a container that stays for so many minutes."""
    chances = prior_of_minutes()
    kept, later = chances[:minutes], chances[minutes:]
    idle = sum(chance * (age + 0.5) for age, chance in enumerate(kept)) + (1.0 - sum(kept)) * minutes
    return ShadowCost(idle, sum(later))


def prior_of_likely(worth: float) -> ShadowCost:
    """Of one that stays while it pays, if a cold start is worth so many idle minutes."""
    return prior_of_ttl(len(ORDERED_ODDS) - bisect_left(ORDERED_ODDS, least_odds(worth)))
