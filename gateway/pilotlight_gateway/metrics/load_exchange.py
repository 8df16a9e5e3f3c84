"""The loads of all gateways at each of them: every one tells its own, and keeps what it has heard for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.host.metrics.loop_watch import LoopWatch
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.scheduling import GatewayLoad
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.fleet.clock_news import note_clock
from pilotlight_gateway.fleet.clock_watch import ClockKind, ClockWatch
from pilotlight_gateway.home.home_report import HomeLoads
from pilotlight_gateway.metrics.load_meter import SAMPLE_EVERY_S, LoadMeter

SILENT_S = 7.0
"""A gateway that has not told its load for so long is gone, or might as well be."""
GATEWAYS_AT_MOST = 1_000
NO_QUEUES = HomeLoads(0, (), 0, ())


@dataclass(frozen=True, kw_only=True)
class MeasuredGateway:
    """Which gateway this is."""

    name: str
    process: str
    """A new one after each start."""
    region: str


class LoadBook:
    """The last load of each gateway. Pure: instants are monotonic seconds."""

    def __init__(self) -> None:
        self._loads: dict[str, tuple[GatewayLoad, float]] = {}

    def on_load(self, load: GatewayLoad, at: float) -> None:
        """Keep a load in the place of the gateway's last one; those that are silent make room."""
        if load.gateway not in self._loads and len(self._loads) >= GATEWAYS_AT_MOST:
            self._loads = {name: last for name, last in self._loads.items() if at - last[1] <= SILENT_S}
            if len(self._loads) >= GATEWAYS_AT_MOST:
                return
        self._loads[load.gateway] = (load, at)

    def known(self, at: float) -> list[tuple[GatewayLoad, float]]:
        """The loads of gateways that are not silent, and how many seconds ago each was told, by their names."""
        fresh = [(load, at - told_at) for load, told_at in self._loads.values() if at - told_at <= SILENT_S]
        return sorted(fresh, key=lambda each: (each[0].name, each[0].gateway))


class LoadExchange:
    """Tells this gateway's load, and hears those of all, its own among them."""

    def __init__(
        self,
        bus: Bus,
        book: LoadBook,
        measured: MeasuredGateway,
        bodies: ByteBudget,
        calls: Callable[[], int],
        clocks: ClockWatch | None = None,
        queues: Callable[[], HomeLoads] = lambda: NO_QUEUES,
    ) -> None:
        """`calls` counts those whose callers wait here, `queues` says what waits at the homes."""
        self._queues = queues
        self._clocks = clocks or ClockWatch()
        self._bus = bus
        self._book = book
        self._measured = measured
        self._bodies = bodies
        self._calls = calls
        self._subject = subjects.loads(measured.region)

    @asynccontextmanager
    async def running(self, watch: LoopWatch, requests: Callable[[], int]) -> AsyncIterator[None]:
        """Tell and hear until the block ends. `requests` counts all that ended."""
        async with self._bus.listening({self._subject: self._on_load}), asyncio.TaskGroup() as group:
            telling = group.create_task(self._publish_loads(watch, requests))
            try:
                yield
            finally:
                telling.cancel()

    async def _publish_loads(self, watch: LoopWatch, requests: Callable[[], int]) -> None:
        meter = LoadMeter()
        while True:
            at = time.monotonic()
            load = self._load(*meter.sample(at, requests(), watch.lags))
            self._book.on_load(load, at)  # also where the bus is away
            with suppress(BusError):
                self._bus.publish_nowait(self._subject, load)
            await asyncio.sleep(SAMPLE_EVERY_S)

    def _load(self, requests_per_s: float, loop_lag_s: float) -> GatewayLoad:
        queues = self._queues()
        return GatewayLoad(
            gateway=self._measured.process,
            name=self._measured.name,
            requests_per_s=requests_per_s,
            loop_lag_s=loop_lag_s,
            body_bytes=self._bodies.used,
            body_bytes_limit=self._bodies.limit,
            calls=self._calls(),
            clock=time.time(),
            queued=queues.queued,
            queues=queues.queues,
            queues_left=queues.left,
            slow=queues.slow,
        )

    def _on_load(self, _: str, message: object, __: str) -> None:
        if isinstance(message, GatewayLoad):
            self._book.on_load(message, time.monotonic())
            if message.gateway != self._measured.process:
                note_clock(self._clocks, ClockKind.GATEWAY, message.name, message.clock)
