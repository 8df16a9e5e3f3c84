"""What tests of the agent share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.core.conftest import anyio_backend, server_url  # noqa: F401 - one nats-server for all of them
from tests.runtime.harness import Harness, harness


@pytest.fixture
async def world(server_url: str, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:  # noqa: F811
    """An agent with plain processes as sandboxes, and everybody it talks to."""
    async with harness(server_url, tmp_path) as world:
        yield world
