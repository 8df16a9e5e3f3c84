"""The metrics of one process, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from pilotlight_core.host.metrics.metric_families import MetricSource


class ProcessMetrics(Collector):
    """Asks its sources at each scrape."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, *sources: MetricSource) -> None:
        self._sources = sources
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for source in self._sources:
            yield from source()

    def exposition(self) -> bytes:
        """The metrics in Prometheus text format."""
        return generate_latest(self._registry)
