"""A gateway over fakes that really listens, for clients that are not ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI

from pilotlight_gateway.http.listening_socket import listen, url_of
from pilotlight_gateway.http.server import make_server
from tests.gateway.world import World


@pytest.fixture
async def address(world: World) -> AsyncIterator[str]:
    """Where the gateway listens. Parts of `world` are as they are now; its fields can still be changed."""
    server = make_server(world.app)
    with listen("127.0.0.1", 0) as listening:
        async with world.services.workers.running(), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield url_of(listening)
            finally:
                server.stop()


@pytest.fixture
async def client(world: World, address: str) -> AsyncIterator[AsyncOpenAI]:
    """One that tries nothing twice."""
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=str(world.key), max_retries=0) as client:
        yield client
