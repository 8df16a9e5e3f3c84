"""Bounds of what bets are worth."""

from __future__ import annotations

from pilotlight_gateway.judging.guards.wealth import LEAST, MOST, bounded_wealth, clipped


def test_wealth_stays_where_a_float_holds_it() -> None:
    """Neither 0 nor infinity."""
    assert bounded_wealth([1.0, 0.0]) == [1.0, LEAST]
    assert bounded_wealth([float("inf"), 2.0]) == [MOST, 2.0]
    assert bounded_wealth([1.0, 2.0]) == [1.0, 2.0]


def test_scores_stay_within_one() -> None:
    """No call says more than any other may."""
    assert [clipped(-7.0), clipped(0.25), clipped(7.0)] == [-1.0, 0.25, 1.0]
