"""Metrics of the bus connection."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from pilotlight_core.bus import BusStatistics
from pilotlight_core.host.metrics.metric_families import gauge


def bus_gauges(statistics: BusStatistics) -> Iterator[Metric]:
    for name in ("messages_in", "messages_out", "bytes_in", "bytes_out", "reconnects", "undecodable", "backlog"):
        text = f"The bus connection's {name.replace('_', ' ')}."
        yield gauge(f"pilotlight_bus_{name}", text, getattr(statistics, name))
    yield gauge("pilotlight_bus_connected", "1 while the bus is connected.", int(statistics.connected))
