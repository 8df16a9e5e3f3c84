"""What starts processes runs on asyncio."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Child processes and nats-py want asyncio."""
    return "asyncio"
