"""A server's connections are closed by the user that has them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilotlight_core.bus import BusError, bus_users, connect
from pilotlight_gateway.nodes.node_issuer import load_issuer
from pilotlight_gateway.nodes.open_connections import OpenConnections
from tests.gateway.nodes.joined_bus import joined_bus


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def test_all_of_one_user_are_closed_and_no_others(tmp_path: Path) -> None:
    """Over every server that answers; whoever has nothing open has nothing closed."""
    async with joined_bus(tmp_path) as place:
        keeper, key = bus_users.connection_keeper(), load_issuer(tmp_path / "issuer.json").keeper
        one, other = await place.join("one"), await place.join("other")
        async with (
            connect(place.url, name="k", inbox=keeper.inbox, makes_streams=False, key=key) as bus,
            place.connect_agent("one", one) as first,
            place.connect_agent("one", one),
            place.connect_agent("other", other) as stays,
        ):
            connections, back = OpenConnections(bus), asyncio.Event()
            first.on_reconnect.append(lambda: ring(back))
            assert await connections.close("agent-nobody") == 0
            assert await connections.close("agent-one") == 2
            async with asyncio.timeout(20):
                await back.wait()  # since its node is in
            assert stays.statistics().reconnects == 0
        with pytest.raises(BusError, match="which connections"):
            await OpenConnections(place.bus).close("agent-one")  # a gateway's own user may not ask, and hears nothing


async def ring(bell: asyncio.Event) -> None:
    bell.set()
