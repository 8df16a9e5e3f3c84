"""Metrics of calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from pilotlight_core.host.metrics.metric_families import gauge, gauge_by
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallStatistics
from pilotlight_gateway.metrics.home_metrics import home_gauges


def call_gauges(calls: CallStatistics, *, inside: int, bodies: ByteBudget, ready: bool) -> Iterator[Metric]:
    """Queued and running calls. `inside`: calls whose caller waits here; `bodies`: of them and others, in memory."""
    yield gauge("pilotlight_queue_depth", "Calls that wait for a container.", calls.queued)
    yield gauge("pilotlight_queue_oldest_seconds", "Age of the oldest waiting call.", calls.oldest_ms / 1000)
    yield gauge("pilotlight_calls_running", "Calls in containers.", calls.running)
    yield gauge_by("pilotlight_containers", "Containers by state.", "state", calls.containers)
    yield gauge("pilotlight_nodes", "Nodes that report.", calls.nodes)
    yield gauge("pilotlight_shards", "Shards that this gateway is the home of.", calls.homes)
    yield gauge("pilotlight_blanks", "Blanks that are ready.", calls.blanks)
    yield gauge("pilotlight_requests_inside", "Calls whose caller waits here.", inside)
    yield gauge("pilotlight_body_bytes", "Bytes of bodies held.", bodies.used)
    yield gauge("pilotlight_body_bytes_limit", "Bytes of bodies that may be held.", bodies.limit)
    yield from home_gauges(calls.scheduling)
    yield gauge("pilotlight_ready", "1 when calls are taken.", int(ready))


def fallback_counts(counts: Mapping[str, int]) -> Iterator[Metric]:
    """Calls that went to their function's fallback, by the code of their refusal."""
    text = "Calls that ran at their function's fallback."
    fallbacks = CounterMetricFamily("pilotlight_fallbacks", text, labels=("reason",))
    for reason, counted in counts.items():
        fallbacks.add_metric((reason,), counted)
    yield fallbacks
