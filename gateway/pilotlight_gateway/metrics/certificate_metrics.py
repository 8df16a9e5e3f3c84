"""Metrics of certificates: how long those that a gateway serves TLS with are good for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from pilotlight_core.host.certificates.server_context import ServerContext
from pilotlight_core.host.metrics.metric_families import MetricSource


def certificates_of(**listeners: ServerContext | None) -> MetricSource:
    """Of listeners by their names, those that have one."""

    def collect() -> list[Metric]:
        ends = {name: each.expires for name, each in listeners.items() if each is not None}
        return certificate_gauges(ends, datetime.now(UTC))

    return collect


def certificate_gauges(ends: Mapping[str, datetime], at: datetime) -> list[Metric]:
    """By listener, the seconds until its certificate ends; below 0 once it has."""
    text = "Seconds until the certificate of a listener ends; negative once it has."
    left = GaugeMetricFamily("pilotlight_certificate_expires_seconds", text, labels=("listener",))
    for listener, end in ends.items():
        left.add_metric((listener,), (end - at).total_seconds())
    return [left]
