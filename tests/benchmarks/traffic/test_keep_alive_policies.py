"""Policies of others do what their sources say."""

from __future__ import annotations

from benchmarks.traffic.keep_alive_policies import (
    UNKNOWN,
    CostAwareTtl,
    FixedTtl,
    knative,
    with_known_law,
)
from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow
from pilotlight_autoscaler.simulator.minutes.minute_model import KeepAliveCost, MinuteSeries


def test_a_fixed_ttl_is_one_window() -> None:
    """And learns nothing."""
    policy = FixedTtl(7)
    policy.ended(3.0)
    assert policy.plan().windows == (WarmWindow(0.0, 7.0),)


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


def test_a_known_law_buys_what_pays_and_no_more() -> None:
    """Of a habit only the first call is cold, and a container is there for half a minute before each call."""
    habit = [MinuteSeries((30,) * 50, 0, 51)]
    assert with_known_law(habit, 20.0) == KeepAliveCost(1, 25.0)
    assert with_known_law(habit, 0.4) == KeepAliveCost(51, 0.0)

    mixed = [MinuteSeries((3,) * 10 + (40,) * 10, 100, 21)]
    assert with_known_law(mixed, 2.0) == KeepAliveCost(1, 5 + 10 + 5 + 2)
