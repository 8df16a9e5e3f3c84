"""Metrics of idempotency keys."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, Metric

from pilotlight_gateway.idempotency.keyed_calls import KeyStatistics


def key_counts(counted: KeyStatistics) -> list[Metric]:
    """Requests with a key, by result: first, replayed or refused."""
    family = CounterMetricFamily("pilotlight_keyed_requests", "Requests with an Idempotency-Key.", labels=("result",))
    for result in ("first", "replayed", "refused"):
        family.add_metric((result,), getattr(counted, result))
    return [family]
