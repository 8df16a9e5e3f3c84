"""Calls in the metrics."""

from __future__ import annotations

from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallStatistics
from pilotlight_gateway.metrics.call_metrics import call_gauges, fallback_counts


def test_what_waits_and_runs_is_shown_with_what_is_held() -> None:
    """Ages in seconds; containers by state; ready is 1 or 0."""
    statistics = CallStatistics(
        queued=3, oldest_ms=1_500.0, running=2, containers={"ready": 4, "starting": 1}, nodes=5, blanks=6, homes=7
    )
    budget = ByteBudget(limit=100)
    budget.take(9, "acme")
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in call_gauges(statistics, inside=8, bodies=budget, ready=False)
        for sample in metric.samples
    }

    assert {key: value for key, value in shown.items() if value and "breakers" not in key[0]} == {
        ("pilotlight_queue_depth",): 3,
        ("pilotlight_queue_oldest_seconds",): 1.5,
        ("pilotlight_calls_running",): 2,
        ("pilotlight_containers", "ready"): 4,
        ("pilotlight_containers", "starting"): 1,
        ("pilotlight_nodes",): 5,
        ("pilotlight_shards",): 7,
        ("pilotlight_blanks",): 6,
        ("pilotlight_requests_inside",): 8,
        ("pilotlight_body_bytes",): 9,
        ("pilotlight_body_bytes_limit",): 100,
    }
    assert shown["pilotlight_ready",] == 0


def test_fallbacks_are_shown_by_their_reason() -> None:
    """The code with which the call would have been refused."""
    (metric,) = fallback_counts({"queue_full": 3})
    assert metric.name == "pilotlight_fallbacks"
    assert [(sample.labels, sample.value) for sample in metric.samples] == [({"reason": "queue_full"}, 3)]
