"""What methods cost a function of which nothing is known: one idle time of the prior of `idle_times`. Pure."""

from __future__ import annotations

from functools import cache, lru_cache

from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow, prior_of_minutes
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan, LearntKeepAlive
from pilotlight_autoscaler.policy.prediction.shadow_pool import ShadowCost

UNKEPT = ShadowCost(0.0, sum(prior_of_minutes()))
"""Of a method that keeps nothing before it knows more: each idle time that ends does so with a cold start."""


@cache
def prior_of_ttl(minutes: int) -> ShadowCost:
    """Of a container that stays for so many minutes."""
    return _prior_of(KeepAlivePlan((WarmWindow(0.0, float(minutes)),)))


@lru_cache(256)
def prior_of_learnt(worth: float) -> ShadowCost:
    """Of the ages at which a container pays, if a cold start is worth so many idle minutes."""
    return _prior_of(LearntKeepAlive((worth,)).plan())


def _prior_of(plan: KeepAlivePlan) -> ShadowCost:
    idle = cold = there = 0.0
    left = 1.0
    for minute, chance in enumerate(prior_of_minutes(), start=1):
        if plan.covers_any(minute - 1, minute):
            idle += chance * (there + 0.5)
            there += 1.0
        else:
            idle += chance * there
            cold += chance
        left -= chance
    return ShadowCost(idle + max(0.0, left) * there, cold)
