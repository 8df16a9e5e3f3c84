"""What stands on the bus runs on asyncio."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """nats-py and child processes want asyncio."""
    return "asyncio"
