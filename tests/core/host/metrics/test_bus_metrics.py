"""The bus connection in the metrics."""

from __future__ import annotations

from pilotlight_core.bus import BusStatistics
from pilotlight_core.host.metrics.bus_metrics import bus_gauges


def test_every_count_of_the_connection_is_a_gauge() -> None:
    """By the names that the bus gives them, and whether it is connected."""
    statistics = BusStatistics(
        connected=True, reconnects=1, messages_in=2, messages_out=3, bytes_in=4, bytes_out=5, undecodable=6,
        handler_errors=0, backlog=7, open_requests=0,
    )  # fmt: skip

    assert {metric.name: metric.samples[0].value for metric in bus_gauges(statistics)} == {
        "pilotlight_bus_messages_in": 2,
        "pilotlight_bus_messages_out": 3,
        "pilotlight_bus_bytes_in": 4,
        "pilotlight_bus_bytes_out": 5,
        "pilotlight_bus_reconnects": 1,
        "pilotlight_bus_undecodable": 6,
        "pilotlight_bus_backlog": 7,
        "pilotlight_bus_connected": 1,
    }
