"""What every process shows: its sources, its bus connection, and how late its loop is."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.config import Settings
from pilotlight_core.host.metrics.bus_metrics import bus_gauges
from pilotlight_core.host.metrics.loop_watch import LoopWatch
from pilotlight_core.host.metrics.metric_families import MetricSource
from pilotlight_core.host.metrics.metrics_listener import serving_metrics
from pilotlight_core.host.metrics.process_metrics import ProcessMetrics


@asynccontextmanager
async def measured_process(
    settings: Settings,
    bus: Bus,
    *sources: MetricSource,
    watch: LoopWatch | None = None,
) -> AsyncIterator[LoopWatch]:
    """Measure the loop, and serve metrics where the settings say, until the block ends; yield what measures it.

    `watch` is one that the process ticks itself.

    Raises:
        CannotListen: see `serving_metrics`.
    """
    own = watch or LoopWatch(time.monotonic())
    shown = ProcessMetrics(*sources, own.collect, lambda: bus_gauges(bus.statistics()))
    async with serving_metrics(settings.metrics_host, settings.metrics_port, shown.render):
        if watch is not None:
            yield own
            return
        async with own.running():
            yield own
