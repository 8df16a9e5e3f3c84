"""Worker processes for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight_gateway.bodies.worker_pool import BodyWorkers


@pytest.fixture
async def workers() -> AsyncIterator[BodyWorkers]:
    pool = BodyWorkers()
    async with pool.running():
        yield pool
    assert not pool.processes
