"""What a container offers whose function has an engine."""

from __future__ import annotations

import asyncio

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.messages.call_messages import Cancel
from tests.builders.specs import method
from tests.runtime.harness import Harness

SOURCE = """
import asyncio

from pilotlight_core.model.messages.engine_report import EngineReport, report_engine

async def f(waiting, stays=False):
    if stays:
        await asyncio.Event().wait()
    report_engine(EngineReport(running=2, waiting=waiting, kv_used=9, kv_total=10))
"""


async def test_while_calls_lack_room_within_only_spare_slots_are_free(world: Harness) -> None:
    """As long as the engine says so: others wait at their home, where tenants take turns."""
    engine = EngineSpec(kind=EngineKind.SIM, max_sequences=8)
    container = await world.bind(
        await world.deploy(SOURCE, engine=engine, max_inputs=10, methods=(method(is_async=True),))
    )

    async def offers(slots: int, *held: str) -> int:
        """Wait for a credit with so many slots, of which these calls hold some; returns how many are spare."""
        async with asyncio.timeout(30):
            while (credit := world.credits[container][-1]).slots != slots or credit.held != held:
                await world.news()
        return credit.spare

    assert await offers(10) == 2
    stays = world.run(container, waiting=0, stays=True)
    await world.run(container, waiting=1).output()
    assert await offers(3, stays.id) == 2
    await world.run(container, waiting=0).output()
    assert await offers(10, stays.id) == 2
    await world.run(container, waiting=1).output()
    world.control(Cancel(call_id=stays.id))
    assert await offers(10) == 2  # one that holds none has none that wait


async def test_a_function_without_an_engine_has_no_spare_slots(world: Harness) -> None:
    """All of them are for everybody."""
    container = await world.bind(await world.deploy("def f():\n    pass\n", max_inputs=10))

    assert (world.credits[container][-1].slots, world.credits[container][-1].spare) == (10, 0)
