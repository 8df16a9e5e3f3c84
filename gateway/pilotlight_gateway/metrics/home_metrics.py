"""Metrics of homes: shedding, breakers and slowdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_core.host.metrics.metric_families import gauge, gauge_by
from pilotlight_gateway.home.home import HomeStatistics
from pilotlight_gateway.home.home_report import worst_of


def home_gauges(homes: Iterable[HomeStatistics]) -> Iterator[Metric]:
    """Sums over all homes; labels are tier ranks, classes and kinds of breakers."""
    homes = list(homes)
    shed: Counter[int] = Counter()
    for home in homes:
        shed.update(home.shed)
    calls = CounterMetricFamily("pilotlight_calls_shed", "Queued calls that gave way.", labels=("tier_rank",))
    for rank, counted in shed.items():
        calls.add_metric((str(rank),), counted)
    yield calls
    yield gauge_by(
        "pilotlight_breakers_open",
        "Circuit breakers that are not closed.",
        "of",
        {
            "version": sum(home.breakers.versions for home in homes),
            "tenant": sum(home.breakers.tenants for home in homes),
            "container": sum(home.breakers.containers for home in homes),
        },
    )
    slowdown = GaugeMetricFamily(
        "pilotlight_slowdown_max", "The largest slowdown of a flow against running alone.", labels=("class",)
    )
    for priority, value in worst_of(home.slowdown for home in homes).items():
        slowdown.add_metric((priority,), value)
    yield slowdown
    slow = sum(len(home.slow) for home in homes)
    yield gauge("pilotlight_slow_flows", "Flows that others slow down; more than 0 is an alert.", slow)
