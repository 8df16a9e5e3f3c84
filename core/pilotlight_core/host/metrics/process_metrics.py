"""The metrics of one process, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_open
from prometheus_client.registry import Collector

from pilotlight_core.host.metrics.metric_families import MetricSource

OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


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

    def render(self, accept: str) -> tuple[bytes, str]:
        """The metrics, and their media type: OpenMetrics, which alone has exemplars, if an Accept header names it."""
        if OPEN_METRICS.partition(";")[0] not in accept:
            return self.exposition(), self.content_type
        body: bytes = generate_open(self._registry)  # type: ignore[no-untyped-call]
        return body, OPEN_METRICS
