"""Metrics of clients' connections."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_gateway.limits.connections import ClientConnections


def connection_counts(counted: ClientConnections) -> list[Metric]:
    """How many are open, and how many were refused or closed, by the reason."""
    held = GaugeMetricFamily("pilotlight_connections", "Connections of clients.", labels=("known",))
    held.add_metric(("true",), counted.known)
    held.add_metric(("false",), counted.open - counted.known)
    refused = CounterMetricFamily(
        "pilotlight_connections_refused", "Connections that a bound refused.", labels=("limit",)
    )
    for limit, number in counted.refused.items():
        refused.add_metric((limit,), number)
    closed = CounterMetricFamily(
        "pilotlight_connections_closed", "Connections closed for want of a key or of room.", labels=("reason",)
    )
    for reason, number in counted.closed.items():
        closed.add_metric((reason,), number)
    return [held, refused, closed]
