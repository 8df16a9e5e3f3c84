"""What tests of the gateway share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.world import World


@pytest.fixture
def anyio_backend() -> str:
    """The HTTP side and the bus are asyncio."""
    return "asyncio"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A whole HTTP side over fakes."""
    world = World(tmp_path)
    yield world
    world.close()
