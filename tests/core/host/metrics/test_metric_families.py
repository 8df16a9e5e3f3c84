"""Families of metrics, and what bounds them."""

from __future__ import annotations

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_core.host.metrics.metric_families import (
    BoundedLabel,
    counter,
    counter_by,
    gauge,
    gauge_by,
    histogram,
    histogram_by,
)


def test_a_label_has_a_limit() -> None:
    """Beyond it new values are counted together; known ones stay themselves."""
    bounded = BoundedLabel(2)

    assert [bounded(value) for value in ("a", "b", "c", "a", "d")] == ["a", "b", "other", "a", "other"]
    assert len(bounded) == 2


def test_each_family_is_shown_as_prometheus_reads_it() -> None:
    """A counter ends in _total, and a histogram has buckets, a count and a sum, by its label or by none."""
    waits = Histogram((1.0,))
    waits.observe(3.0)
    shown = ProcessMetrics(
        lambda: [gauge("a", "A.", 1), gauge_by("b", "B.", "of", {"x": 2}), counter("c", "C.", 3)],
        lambda: [counter_by("d", "D.", "of", {"y": 4}), histogram("e", "E.", waits)],
        lambda: [histogram_by("f", "F.", "of", {"z": waits})],
    ).exposition()

    assert [line for line in shown.decode().splitlines() if not line.startswith("#")] == [
        "a 1.0",
        'b{of="x"} 2.0',
        "c_total 3.0",
        'd_total{of="y"} 4.0',
        'e_bucket{le="1.0"} 0.0',
        'e_bucket{le="+Inf"} 1.0',
        "e_count 1.0",
        "e_sum 3.0",
        'f_bucket{le="1.0",of="z"} 0.0',
        'f_bucket{le="+Inf",of="z"} 1.0',
        'f_count{of="z"} 1.0',
        'f_sum{of="z"} 3.0',
    ]
