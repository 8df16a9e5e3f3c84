"""What calls have begun on the bus they end."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import connect
from pilotlight_core.model.ids import token
from tests.gateway.call_gateway import CallGateway


async def test_who_runs_calls_no_more_hears_nothing_more(server_url: str) -> None:
    """Its subscriptions are undone, and it is not told of reconnects."""
    async with connect(server_url, name="calls") as bus:
        before = set(bus._client._handlers)
        gateway = CallGateway(bus, region=f"r{token(6)}", name=f"g{token(6)}")
        async with asyncio.timeout(60), gateway.running():
            assert len(bus._client._handlers) >= len(before) + 9

        assert set(bus._client._handlers) == before
        assert bus.on_reconnect == []
