"""The moving average."""

from __future__ import annotations

import pytest

from pilotlight_core.model.ewma import ewma


def test_the_first_value_is_the_mean() -> None:
    """Also a zero: that is a value like any other."""
    assert ewma(None, 7.0, 0.1) == 7.0
    assert ewma(None, 0.0, 0.1) == 0.0
    assert ewma(0.0, 10.0, 0.1) == 1.0


def test_a_new_value_moves_the_mean_by_its_weight() -> None:
    """From nothing at 0 to all of it at 1."""
    assert [ewma(100.0, 200.0, newest) for newest in (0.0, 0.25, 1.0)] == [100.0, 125.0, 200.0]


def test_it_comes_near_to_what_stays_the_same_and_forgets_what_was() -> None:
    """After `n` values what was has the weight `(1 - newest) ** n`."""
    mean: float | None = 100.0
    for _ in range(20):
        mean = ewma(mean, 0.0, 0.1)

    assert mean == pytest.approx(100.0 * 0.9**20)
