"""Middles and spreads."""

from __future__ import annotations

import pytest

from pilotlight_gateway.judging.usual.robust import deviation_of, mad_of, median_of, quantile_of


def test_a_wild_value_moves_neither_the_median_nor_its_distance() -> None:
    """1.4826 times the median distance is the standard deviation of what is normal."""
    assert median_of([3.0, 1.0, 2.0, 1e9]) == 2.5
    assert median_of([5.0, 1.0, 2.0]) == 2.0
    assert mad_of([1.0, 2.0, 3.0, 4.0, 1e9]) == pytest.approx(1.4826)


def test_values_that_are_mostly_alike_have_the_spread_of_the_others() -> None:
    """A median distance of 0 would make everything else infinitely far."""
    assert mad_of([1.0, 1.0, 1.0, 5.0]) == deviation_of([1.0, 1.0, 1.0, 5.0]) == pytest.approx(3**0.5)


def test_a_quantile_is_a_value_that_is_there() -> None:
    """The least one that the part does not exceed."""
    values = [float(value) for value in range(1, 101)]

    assert quantile_of(values, 0.95) == 95.0
    assert quantile_of([4.0], 0.5) == 4.0
