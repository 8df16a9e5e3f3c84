"""One nats-server for all tests of the agent that do not kill it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pilotlight_core.host.embedded import (
    bus_token,
    choose_port,
    find_nats_server,
    nats_url,
    wait_listening,
    with_parent,
    write_config,
)
from tests.runtime.harness import Harness, harness


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
async def world(server_url: str, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    """An agent with plain processes as sandboxes, and everybody it talks to."""
    async with harness(server_url, tmp_path) as world:
        yield world
