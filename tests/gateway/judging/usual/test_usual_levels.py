"""Levels of other amounts."""

from __future__ import annotations

import math

import pytest

from pilotlight_gateway.judging.usual.usual_levels import MOST_SAMPLES, UsualLevel


def level_of(values: list[float], least: int = 8) -> UsualLevel:
    level = UsualLevel()
    for value in values:
        level.learn(value, least)
    return level


def test_nothing_is_known_before_there_are_enough() -> None:
    """A start has others to be compared with from the eighth on."""
    assert level_of([10.0] * 7).residual(20.0) is None
    assert level_of([10.0] * 8).residual(20.0) == pytest.approx(math.log(2.0))


def test_times_are_compared_by_ratio_and_numbers_that_may_be_negative_by_difference() -> None:
    """A tolerated part is a part of the middle then."""
    times, numbers = level_of([10.0] * 8), level_of([-2.0, 0.0, 2.0, 4.0] * 2)

    assert times.tolerance(0.05) == pytest.approx(math.log(1.05))
    assert numbers.residual(5.0) == pytest.approx(4.0)
    assert numbers.tolerance(0.05) == pytest.approx(0.05)
    assert times.residual(-1.0) is None


def test_what_is_kept_is_bounded() -> None:
    """Evidence is written often."""
    assert len(level_of([1.0] * 500).samples) == MOST_SAMPLES
