"""Metrics of limits."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_gateway.limits.limits_home import LimitHomeStatistics


def limit_gauges(statistics: LimitHomeStatistics) -> Iterator[Metric]:
    """What this gateway counts as a home of limits."""
    yield GaugeMetricFamily("pilotlight_limit_shards", "Shards whose limits this gateway keeps.", statistics.shards)
    yield GaugeMetricFamily(
        "pilotlight_limit_shards_settling", "Those whose running calls are not all known yet.", statistics.settling
    )
    yield GaugeMetricFamily("pilotlight_limit_accounts", "Tenants and functions counted here.", statistics.accounts)
    yield GaugeMetricFamily("pilotlight_limit_permits", "Running calls counted here.", statistics.permits)
    asks = CounterMetricFamily("pilotlight_limit_asks", "Calls decided here.", labels=("verdict",))
    asks.add_metric(("granted",), statistics.granted)
    asks.add_metric(("refused",), statistics.refused)
    yield asks
