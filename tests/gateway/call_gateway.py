"""The calls of one gateway on a real bus, as `serving` has them, without HTTP, limits and jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.shards import ShardParticipant
from pilotlight_gateway.gateway_calls import GatewayCalls
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
        self._parts = GatewayCalls(
            bus,
            bodies or LargeBodies(url="http://origin", budget=ByteBudget(limit=10**7)),
            region=region,
            name=name,
            instance=f"{name}-{token(8)}",
            limits=limits or QueueLimits(),
        )
        self.calls, self.table, self.drivers = self._parts.service, self._parts.table, self._parts.drivers
        self.shards = self._parts.shards(participants or {})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CallService]:
        """Take calls until the block ends."""
        async with self._parts.running(), self.shards.running():
            yield self.calls
