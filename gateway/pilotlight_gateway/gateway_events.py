"""The events of one gateway: what it tells of its homes, and what it reads for callers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.events.bus_event_log import BusEventLog
from pilotlight_gateway.events.event_reader import BusEvents
from pilotlight_gateway.events.home_events import HomeEvents
from pilotlight_gateway.gateway_calls import GatewayCalls


class GatewayEvents:
    """`running` tells them."""

    def __init__(self, bus: Bus, calls: GatewayCalls, *, region: str) -> None:
        self.source = BusEvents(bus=bus, region=region)
        self._log = BusEventLog(bus, region=region)
        self._homes = HomeEvents(calls.drivers.homes, self._log)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell what happens at the homes until the block ends."""
        async with self._log.running(), self._homes.running():
            yield
