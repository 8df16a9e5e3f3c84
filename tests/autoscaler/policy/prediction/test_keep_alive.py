"""Plans of when a container is there, and what they cost."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.prediction.idle_times import IdleTimes, WarmWindow
from pilotlight_autoscaler.policy.prediction.keep_alive import REPLAN_AFTER, KeepAlivePlan, LearntKeepAlive

PLAN = KeepAlivePlan((WarmWindow(0.0, 2.0), WarmWindow(9.0, 11.0)))


@pytest.mark.parametrize(
    ("minutes", "covered", "idle"),
    [(0.5, True, 0.5), (2.0, True, 2.0), (5.0, False, 2.0), (9.0, True, 2.0), (10.0, True, 3.0), (60.0, False, 4.0)],
)
def test_a_call_finds_a_container_in_a_window(minutes: float, covered: bool, idle: float) -> None:
    """And what was idle until then was idle in windows alone."""
    assert (PLAN.covers(minutes), PLAN.idle_minutes(minutes)) == (covered, idle)


def test_no_window_costs_nothing() -> None:
    """And covers nothing."""
    assert (KeepAlivePlan(()).covers(1.0), KeepAlivePlan(()).idle_minutes(1.0)) == (False, 0.0)


def test_plans_follow_what_is_learnt() -> None:
    """At once while little is known, later every so many idle times."""
    policy = LearntKeepAlive((20.0, 200.0))
    assert len(policy.plans()) == 2
    first = policy.plan()
    policy.ended(30.0)
    assert policy.plan().windows != first.windows

    plans = policy.plans()
    for _ in range(500):
        policy.ended(30.0)
        plans = policy.plans()
    while policy.plans() is plans:
        policy.ended(30.0)
    plans = policy.plans()
    kept = 0
    while policy.plans() is plans:
        policy.ended(90.0)
        kept += 1
    assert kept == REPLAN_AFTER


def test_it_goes_on_from_what_was_stored() -> None:
    """A new leader keeps as the former one did."""
    policy = LearntKeepAlive((20.0,))
    for _ in range(30):
        policy.ended(60.0)
    times = policy.times
    again = LearntKeepAlive((20.0,), IdleTimes(times.counts(), times.never))
    assert again.plan().windows == LearntKeepAlive((20.0,), times).plan().windows
