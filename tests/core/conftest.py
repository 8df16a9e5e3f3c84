"""One nats-server for all tests that do not kill it; the others run their own."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_supervisor.embedded_bus import (
    bus_token,
    choose_port,
    find_nats_server,
    nats_url,
    wait_listening,
    with_parent,
    write_config,
)


@pytest.fixture
def anyio_backend() -> str:
    """nats-py and child processes want asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a nats-server that lives as long as the test session."""
    folder = tmp_path_factory.mktemp("nats")
    port = choose_port(folder)
    command = with_parent(find_nats_server(), "-c", write_config(folder, port), "-l", folder / "server.log")
    process = subprocess.Popen(command)
    try:
        assert asyncio.run(wait_listening(folder, port, 10.0)), (folder / "server.log").read_text()
        yield nats_url(port, bus_token(folder))
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="test") as bus:
        yield bus


@pytest.fixture
async def other(server_url: str) -> AsyncIterator[Bus]:
    """A second connection, as of another process."""
    async with connect(server_url, name="other") as bus:
        yield bus
