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


def test_a_trace_is_wanted_of_each_bucket_once_a_second() -> None:
    """Of calls of which all are alike: others are noted whenever they come."""
    histogram = Histogram((1.0, 2.0))
    assert histogram.wants_exemplar(0.5, at=100.0)
    histogram.note_exemplar(0.5, "trace", 100.0)
    assert not histogram.wants_exemplar(1.0, at=100.9)
    assert histogram.wants_exemplar(1.5, at=100.9)
    assert histogram.wants_exemplar(1.0, at=101.0)
