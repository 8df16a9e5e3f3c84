"""Looks that go on whatever happens."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from pilotlight_core.bus import BusDown
from pilotlight_gateway.events.refreshing import refreshing
from tests.waiting import until


@pytest.mark.parametrize("error", [BusDown("No bus."), ValueError("a mistake")])
async def test_a_look_that_fails_is_made_again(error: Exception) -> None:
    """And none is made once the block has ended."""
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        raise error

    with capture_logs() as logs:
        async with refreshing(look, 0.001, "levels"):
            await until(lambda: looks > 2)
    assert {line["what"] for line in logs} == {"levels"}
