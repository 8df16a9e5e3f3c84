"""One tenant's slow questions leave others their turn."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from pilotlight_gateway.dashboard.page_parts.asking_turns import AskingTurns


async def test_a_tenant_waits_for_its_own_turns_alone() -> None:
    """And nothing is kept of who asks no more."""
    turns = AskingTurns(at_a_time=2)
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(turns.taking("bully"))
        third = asyncio.ensure_future(held.enter_async_context(turns.taking("bully")))
        async with turns.taking("victim"):
            assert not third.done()
        third.cancel()
        await asyncio.wait((third,))
        assert len(turns) == 1
    assert len(turns) == 0
