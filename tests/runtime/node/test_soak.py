"""Many calls, cancelled, drained and killed at random: each has exactly one last frame, and nothing leaks."""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from pilotlight_core.model.messages.call_messages import Cancel, Ended, Outcome, Refused, Window
from pilotlight_core.model.messages.node_messages import ContainerState, Stop
from tests.runtime.harness import Call, Harness, Version, batched, generator

SINGLE = """
import os, time
def f(n):
    time.sleep(0.002 * (n % 5))
    if n % 50 == 7:
        os._exit(1)
    if n % 10 == 3:
        raise ValueError(n)
    return n
"""
BATCH = """
def f(n):
    if 13 in [x % 40 for x in n]:
        raise ValueError("unlucky")
    return n
"""
STREAM = """
def f(n):
    for i in range(n % 30):
        yield i
"""


async def versions(world: Harness) -> list[Version]:
    return [
        await world.deploy(SINGLE, max_inputs=4, timeout=0.5),
        await world.deploy(BATCH, methods=batched(8, wait_ms=2.0), idempotent=True),
        await world.deploy(STREAM, methods=generator(), max_inputs=4),
    ]


class Chaos:
    """Calls of two containers whose places are taken by others now and then."""

    def __init__(self, world: Harness, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.calls: list[Call] = []

    async def serve(self, slice_id: str, choices: list[Version], containers: int) -> None:
        for _ in range(containers):
            container = await self.world.bind(self.random.choice(choices), slice_id)
            calls = [await self.call(container) for _ in range(self.random.randint(20, 60))]
            if self.random.random() < 0.5:
                await self.world.drain(container, within_ms=self.random.choice([10.0, 1_000.0]))
            else:
                await self.world.command(Stop(epoch=self.world.epoch, container=container))
            await asyncio.gather(*(call.last for call in calls))
            await self.world.credit(container, ContainerState.GONE)
            await self.world.report(lambda r: not any(p.container for p in r.slices if p.id == slice_id))

    async def call(self, container: str) -> Call:
        call = self.world.run(container, {"window": 4}, n=self.random.randint(0, 1_000))
        self.calls.append(call)
        if self.random.random() < 0.1:
            self.world.control(Cancel(call_id=call.id))
        if self.random.random() < 0.7:
            await self.read(call)
        return call

    async def read(self, call: Call) -> None:
        """Wait for its end, and pass on what it streams."""
        while not call.last.done():
            call.heard.clear()
            if call.chunks:
                self.world.control(Window(call_id=call.id, upto=len(call.chunks)))
            await call.heard.wait()


@pytest.mark.parametrize("seed", [int(os.environ.get("SEED", "1"))])
async def test_every_call_ends_once(world: Harness, seed: int) -> None:
    """Whatever happens to it and to its container; and the books balance afterwards."""
    chaos = Chaos(world, seed)
    choices = await versions(world)
    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        group.create_task(chaos.serve("cpu-0", choices, 5))
        group.create_task(chaos.serve("cpu-1", choices, 5))

    for call in chaos.calls:
        last = [frame for frame in call.frames if isinstance(frame, Ended | Refused)]
        assert len(last) == 1, (call.id, last)
        assert call.frames[-1] is last[0]
        if isinstance(last[0], Refused) or not last[0].started:
            assert not call.started or (isinstance(last[0], Ended) and last[0].outcome is Outcome.CANCELLED)
    outcomes = {frame.outcome for call in chaos.calls for frame in call.frames if isinstance(frame, Ended)}
    assert {Outcome.OK, Outcome.DIED} <= outcomes
