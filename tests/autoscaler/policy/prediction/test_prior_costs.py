"""What is known of functions of which nothing is known."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.prediction.prior_costs import UNKEPT, prior_of_likely, prior_of_ttl


def test_a_longer_life_costs_more_idle_time_and_fewer_starts() -> None:
    """Of none, every idle time that ends is a start."""
    costs = [prior_of_ttl(minutes) for minutes in (1, 10, 60, 240)]

    assert UNKEPT.cold > costs[0].cold
    assert [cost.cold for cost in costs] == sorted((cost.cold for cost in costs), reverse=True)
    assert [cost.idle_minutes for cost in costs] == sorted(cost.idle_minutes for cost in costs)
    assert UNKEPT.cold == pytest.approx(0.9)


@pytest.mark.parametrize("worth", [10.0, 22.0, 200.0])
def test_what_is_likely_begins_with_what_pays(worth: float) -> None:
    """It costs no more than no container, and what any life costs within a tenth."""
    likely = prior_of_likely(worth).total(worth)
    assert likely <= UNKEPT.total(worth) * 1.1
    assert likely <= 1.3 * min(prior_of_ttl(minutes).total(worth) for minutes in (1, 5, 10, 60, 240))
