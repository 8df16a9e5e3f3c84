"""The calls of one gateway on a real bus, put together as `serving` does it, without HTTP, limits and jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.driver_port import BusDriverPort
from pilotlight_gateway.cluster.shard_table import ShardTable
from pilotlight_gateway.cluster.shards import ShardParticipant, Shards, gateway_lease
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits


class CallGateway:
    """`calls` is what callers use; the rest is for tests to look into."""

    def __init__(
        self,
        bus: Bus,
        *,
        name: str,
        region: str = "local",
        bodies: LargeBodies | None = None,
        limits: QueueLimits | None = None,
        participants: Mapping[str, ShardParticipant] | None = None,
    ) -> None:
        instance = f"{name}-{token(8)}"
        bodies = bodies or LargeBodies(url="http://origin", budget=ByteBudget(limit=10**7))
        lease = gateway_lease(bus, region=region, name=name, instance=instance)
        self.budget = bodies.budget
        self.table = ShardTable(instance, lease)
        self._port = BusDriverPort(bus)
        fleet = FleetView()
        self.drivers = CallDrivers(
            self._port, self.table, fleet, bodies, region=region, gateway=instance, limits=limits or QueueLimits()
        )
        self.calls = CallService(
            bus, self.drivers.origins, self.table, fleet, self.drivers.homes.statistics,
            region=region, budget=bodies.budget,
        )  # fmt: skip
        self.shards = Shards(
            bus, self.table, lease, name=name, callers=self.drivers,
            participants={"calls": self.drivers.homes, **(participants or {})},
        )  # fmt: skip

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CallService]:
        """Take calls until the block ends."""
        async with self._port.driving(self.drivers), self.shards.running():
            yield self.calls
