"""The metrics of one process, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from pilotlight_core.host.metrics.metric_families import MetricSource


class ProcessMetrics(Collector):
    """Asks its sources at each scrape; `refresh` is awaited before, for what a source cannot read at once."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, *sources: MetricSource, refresh: Callable[[], Awaitable[None]] | None = None) -> None:
        self._sources = sources
        self._refresh = refresh
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def collect(self) -> Iterator[Metric]:
        for source in self._sources:
            yield from source()

    def exposition(self) -> bytes:
        """The metrics in Prometheus text format."""
        return generate_latest(self._registry)

    async def scrape(self) -> bytes:
        """The metrics after a refresh."""
        if self._refresh is not None:
            await self._refresh()
        return self.exposition()
