"""What every process shows."""

from __future__ import annotations

import httpx

from pilotlight_core.bus import connect
from pilotlight_core.host.config import Settings
from pilotlight_core.host.metrics import LoopWatch, measured_process
from pilotlight_core.host.metrics.metric_families import gauge
from tests.core.host.metrics.test_metrics_listener import unused_port


async def test_its_own_sources_its_bus_and_its_loop_are_shown(server_url: str) -> None:
    """Of a watch that the process ticks itself as well as of one that is made for it."""
    settings = Settings(metrics_port=unused_port())
    given = LoopWatch(0.0)
    given.tick(60.1)
    async with connect(server_url, name="p") as bus, httpx.AsyncClient() as client:
        for watch in (given, None):
            async with measured_process(settings, bus, lambda: [gauge("own", "Own.", 7)], watch=watch):
                shown = (await client.get(f"http://127.0.0.1:{settings.metrics_port}/metrics")).text.splitlines()
                assert {"own 7.0", "pilotlight_bus_connected 1.0"} <= set(shown)
                assert ("pilotlight_loop_lag_seconds_sum 60.0" in shown) == (watch is given)


async def test_without_a_port_nothing_is_served(server_url: str) -> None:
    """As is the default; the block runs all the same."""
    async with connect(server_url, name="p") as bus, measured_process(Settings(), bus):
        assert Settings().metrics_port == 0
