"""Calls per second, by the counts of homes."""

from __future__ import annotations

import math

import pytest

from pilotlight_autoscaler.observations.call_rate import RATE_SMOOTHING_S, CallRate


def test_a_rate_follows_the_counts() -> None:
    """Ten a second, each quarter of a second, end at ten."""
    rate = CallRate()
    for number in range(200):
        rate.count(10 if number % 4 == 0 else 0, number * 0.25)
    assert rate.value == pytest.approx(10.0, rel=0.5)


def test_a_rate_of_long_ago_does_not_count() -> None:
    """It begins anew, with a step's part of the first count."""
    rate = CallRate(value=500.0, at=0.0)
    rate.count(4, 100.0)
    assert rate.value == pytest.approx(4.0 * (1 - math.exp(-1.0 / RATE_SMOOTHING_S)))
