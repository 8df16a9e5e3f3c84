"""The minute model counts cold starts and idle minutes as its definition says."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.prediction.hybrid_histogram import HybridHistogram
from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan
from pilotlight_autoscaler.simulator.minutes.minute_model import (
    KeepAliveCost,
    MinuteSeries,
    cost_of,
    levels_of,
    series_of,
)


class Fixed:
    """A time to live in minutes."""

    def __init__(self, minutes: float) -> None:
        self._plan = KeepAlivePlan((WarmWindow(0.0, minutes),))

    def plan(self) -> KeepAlivePlan:
        return self._plan

    def ended(self, minutes: float) -> None:
        """It learns nothing."""


def test_series_are_read_from_counts() -> None:
    """Idle times between minutes with calls, and what is left at the end."""
    assert series_of([0, 3, 0, 0, 1, 1, 0]) == MinuteSeries((3, 1), 1, 5)
    assert series_of([0, 0]) is None


def test_levels_of_concurrency_are_series() -> None:
    """The second container is called in the minutes that need two."""
    assert list(levels_of([1, 2, 0, 2, 1])) == [MinuteSeries((1, 2, 1), 0, 4), MinuteSeries((2,), 1, 2)]
    assert list(levels_of([0, 0])) == []


@pytest.mark.parametrize(
    ("minutes", "cost"), [(0, (4, 0)), (1, (3, 4)), (2, (2, 6)), (3, (2, 8)), (5, (1, 12)), (9, (1, 16))]
)
def test_a_fixed_time_costs_what_it_should(minutes: int, cost: tuple[int, float]) -> None:
    """Calls after 1, 2 and 5 minutes, and nine minutes until the end; the first call is cold in any case."""
    series = [MinuteSeries((1, 2, 5), 9, 4)]
    idle = {0: 0, 1: 1 + 1 + 1 + 1, 2: 1 + 2 + 2 + 2, 3: 1 + 2 + 3 + 3, 5: 1 + 2 + 5 + 5, 9: 1 + 2 + 5 + 9}[minutes]
    assert cost_of(series, lambda: Fixed(minutes)) == KeepAliveCost(cost[0], idle)


def test_a_habit_is_learnt() -> None:
    """Of a function that is called every half hour, a few calls are cold, and containers are idle for little of it."""
    cost = cost_of([MinuteSeries((30,) * 200, 0, 201)], lambda: HybridHistogram(60))
    assert cost.cold <= 5
    assert cost.idle_minutes < 200 * 30 / 5
