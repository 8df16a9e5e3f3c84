"""The duties beside the gateways."""

from __future__ import annotations

import asyncio

from pilotlight_gateway.duties.duty_serving import run_forever


async def test_a_duty_that_fails_begins_anew_and_ends_no_other() -> None:
    """However it fails; it ends with its process."""
    begun = 0
    third = asyncio.Event()

    async def run() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise ValueError("nobody expected this")
        if begun == 2:
            raise ExceptionGroup("nor these", [KeyError("this")])
        third.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        duty = group.create_task(run_forever("a duty", run, pause_s=0.0))
        async with asyncio.timeout(30):
            await third.wait()
        duty.cancel()

    assert begun == 3
