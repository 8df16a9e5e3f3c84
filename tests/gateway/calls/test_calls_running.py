"""What calls have begun on the bus they end."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import connect
from pilotlight_core.model.ids import token
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.home.home import QueueLimits


async def test_who_runs_calls_no_more_hears_nothing_more(server_url: str) -> None:
    """Its subscriptions are undone, and it is not told of reconnects."""
    budget = ByteBudget(limit=10**7)
    async with connect(server_url, name="calls") as bus:
        before = set(bus._client._handlers)
        calls = CallService(
            bus, region=f"r{token(6)}", gateway=token(8), name=f"g{token(6)}",
            bodies=LargeBodies(url="http://origin", budget=budget), budget=budget, limits=QueueLimits(),
        )  # fmt: skip
        async with asyncio.timeout(60), calls.running():
            assert len(bus._client._handlers) >= len(before) + 9

        assert set(bus._client._handlers) == before
        assert bus.on_reconnect == []
