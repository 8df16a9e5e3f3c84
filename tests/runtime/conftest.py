"""What tests of the agent share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runtime.harness import Harness, harness


@pytest.fixture
def anyio_backend() -> str:
    """The agent, its sandboxes and the bus are asyncio."""
    return "asyncio"


@pytest.fixture
async def world(server_url: str, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    """An agent with plain processes as sandboxes, and everybody it talks to."""
    async with harness(server_url, tmp_path) as world:
        yield world
