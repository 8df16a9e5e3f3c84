"""Percentiles from bins."""

from __future__ import annotations

from random import Random

import pytest

from pilotlight_autoscaler.simulator.runs.wait_histogram import WaitHistogram


def test_percentiles_are_right_to_two_percent() -> None:
    """Against those of all values."""
    dice, histogram = Random(2), WaitHistogram()
    values = sorted(dice.expovariate(0.1) for _ in range(5_000))
    for value in values:
        histogram.observe(value)
    for percent in (50, 95, 99):
        assert histogram.percentile(percent) == pytest.approx(values[5_000 * percent // 100 - 1], rel=0.021)
    assert histogram.total_s == pytest.approx(sum(values))


def test_those_that_did_not_wait_count() -> None:
    """Two histograms add up; of nothing there is no percentile."""
    none, some = WaitHistogram(), WaitHistogram()
    assert none.percentile(99) == 0.0
    none.observe(0.0, 90)
    some.observe(10.0, 10)
    none.add(some)
    assert (none.calls, none.percentile(90)) == (100, 0.0)
    assert none.percentile(91) == pytest.approx(10.0, rel=0.02)
