"""How late a process's event loop is, and whether the process stood still.

A tick is due every so often; how much later it comes is the loop's lag, which every callback and every message of the
process has had too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import structlog
from prometheus_client.core import Metric

from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_core.host.metrics.metric_families import histogram

TICK_S = 0.1
"""Between two ticks, where nothing else asks for them more often."""
GAP_S = 0.25
"""So long without a tick means a paused process or a starved machine."""
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of buckets."""

log = structlog.get_logger(__name__)


class LoopWatch:
    """Measures the lag of ticks that are due every `every_s`, and detects that the process stood still.

    After a gap, messages that are read count as received when the process was last known to run: their time limits
    count from an instant that may be long past. They are fresh again after `mark_fresh`, when everything that may have
    waited has been read. Call `tick` every `every_s`, or as late as it is told to, or let `running` do so.
    """

    def __init__(self, at: float, *, every_s: float = TICK_S) -> None:
        self._every_s = every_s
        self._ticked_at = at
        self._stalled_at: float | None = None
        self.stalls = 0
        self.longest_s = 0.0
        self.lags = Histogram(LAG_SECONDS)

    def tick(self, at: float, due_s: float | None = None) -> bool:
        """Whether a gap has just ended. `due_s`: since the last tick, where that is not `every_s`."""
        gap_s, before_at = at - self._ticked_at, self._ticked_at
        self._ticked_at = at
        self.lags.observe(max(0.0, gap_s - (self._every_s if due_s is None else due_s)))
        if gap_s <= GAP_S:
            return False
        self.stalls += 1
        self.longest_s = max(self.longest_s, gap_s)
        if self._stalled_at is None:
            self._stalled_at = before_at
        log.warning("this process stood still", seconds=round(gap_s, 3))
        return True

    def received_at(self, at: float) -> float:
        """The earliest instant at which a message read now can have come."""
        if self._stalled_at is not None:
            return self._stalled_at
        return self._ticked_at if at - self._ticked_at > GAP_S else at

    def mark_fresh(self) -> None:
        self._stalled_at = None

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        text = "How much later than due the event loop came to a callback."
        yield histogram("pilotlight_loop_lag_seconds", text, self.lags)

    @asynccontextmanager
    async def running(self, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[None]:
        """Tick until the block ends, in a process whose messages need no `received_at`."""
        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(self._tick_on(clock))
            try:
                yield
            finally:
                ticking.cancel()

    async def _tick_on(self, clock: Callable[[], float]) -> None:
        self._ticked_at = clock()  # what came before the block is no lag
        while True:
            await asyncio.sleep(self._every_s)
            if self.tick(clock()):
                self.mark_fresh()
