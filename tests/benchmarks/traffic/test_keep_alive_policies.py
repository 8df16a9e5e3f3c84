"""Policies of others do what their sources say."""

from __future__ import annotations

import pytest

from benchmarks.traffic.keep_alive_policies import (
    UNKNOWN,
    CostAwareTtl,
    FixedTtl,
    HybridHistogram,
    knative,
    with_known_law,
)
from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow
from pilotlight_autoscaler.simulator.minute_model import KeepAliveCost, MinuteSeries, learnt_costs


def test_a_fixed_ttl_is_one_window() -> None:
    """And learns nothing."""
    policy = FixedTtl(7)
    policy.ended(3.0)
    assert policy.plan().windows == (WarmWindow(0.0, 7.0),)


def test_the_histogram_unloads_and_prewarms() -> None:
    """What comes each hour is there from 54 minutes on; until it is known, for the whole range."""
    policy = HybridHistogram(240)
    assert policy.plan().windows == (WarmWindow(0.0, 240.0),)
    for _ in range(10):
        policy.ended(60.0)
    ((start, end),) = policy.plan().windows
    assert (start, end) == pytest.approx((54.0, 67.1))


def test_the_histogram_expects_the_mean_of_what_is_beyond_it() -> None:
    """With 15 % on both sides."""
    policy = HybridHistogram(60)
    for _ in range(4):
        policy.ended(200.0)
    ((start, end),) = policy.plan().windows
    assert (start, end) == pytest.approx((170.0, 230.0))


def test_the_cost_aware_ttl_is_the_cheapest_so_far() -> None:
    """Once it has seen ten idle times."""
    policy = CostAwareTtl(100.0)
    for _ in range(9):
        policy.ended(14.0)
    assert policy.plan().windows[0].end == UNKNOWN
    policy.ended(14.0)
    assert policy.plan().windows[0].end == 15.0


def test_knative_keeps_two_for_one_and_half_a_minute_of_grace() -> None:
    """One minute of one container: two more are idle for a minute, and the grace is half of one."""
    assert knative([[1.0, 0.0, 0.0]]) == KeepAliveCost(1, 2.5)
    assert knative([[1.0, 1.0]]) == KeepAliveCost(1, 1.0)


def test_a_known_law_is_never_worse_than_a_learnt_one() -> None:
    """Of a habit, only the first call is cold."""
    series = [MinuteSeries((30,) * 50, 0, 51)]
    known, (learnt,) = with_known_law(series, 20.0), learnt_costs(series, (20.0,))
    assert known.cold == 1 <= learnt.cold
    assert known.idle_minutes <= learnt.idle_minutes
