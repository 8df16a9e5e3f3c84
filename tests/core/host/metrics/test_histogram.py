"""Counts by bucket."""

from __future__ import annotations

from pilotlight_core.host.metrics.histogram import SECONDS, Histogram


def test_a_histogram_counts_each_value_once_at_its_bound() -> None:
    """A value on a bound belongs to it; one beyond all is only in +Inf."""
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(value)

    assert histogram.buckets() == [("1.0", 2.0), ("2.0", 4.0), ("+Inf", 5.0)]
    assert histogram.sum == 14.0


def test_bounds_of_seconds_rise() -> None:
    """Which finding a bucket takes for granted."""
    assert list(SECONDS) == sorted(set(SECONDS))
    assert len(Histogram().counts) == len(SECONDS) + 1
