"""Metrics without endless labels."""

from __future__ import annotations

from prometheus_client import Counter

from pilotlight_core.host.metrics import BoundedLabel, ProcessMetrics


def test_a_label_has_a_limit() -> None:
    """Beyond it new values are counted together; known ones stay themselves."""
    bounded = BoundedLabel(2)

    assert [bounded(value) for value in ("a", "b", "c", "a", "d")] == ["a", "b", "other", "a", "other"]
    assert len(bounded) == 2


def test_metrics_render_as_prometheus_text() -> None:
    """What was counted is in the text."""
    metrics = ProcessMetrics()
    counter = Counter("calls", "Calls.", ["tenant"], registry=metrics.registry)
    for tenant in ("a", "b", "c"):
        counter.labels(metrics.bounded("tenant", 1)(tenant)).inc()

    assert b'calls_total{tenant="a"} 1.0' in metrics.render()
    assert b'calls_total{tenant="other"} 2.0' in metrics.render()
