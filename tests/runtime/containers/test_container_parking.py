"""Containers that are parked and unparked by a real agent, in real sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilotlight_core.model.messages.call_messages import Refusal
from pilotlight_core.model.messages.node_messages import ContainerState, Park, Unpark
from tests.runtime.harness import WITHIN, Harness, harness

GIB = 2**30
COUNT = """
number = 0
def f():
    global number
    number += 1
    return number
"""


@pytest.fixture
async def walled(server_url: str, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Harness]:
    """An agent with bubblewrap, two CPU slots, and memory for what is parked."""
    async with harness(server_url, tmp_path, sandbox="bubblewrap", warm_memory=GIB) as world:
        yield world


async def parked(world: Harness, container: str) -> None:
    """Park it, and wait until its slot is free."""
    assert (await world.command(Park(epoch=world.epoch, container=container))).ok
    await world.report(
        lambda report: (
            [(one.state, one.slice) for one in report.containers if one.id == container]
            == [(ContainerState.PARKED, "")]
        )
    )


async def awake(world: Harness, container: str) -> None:
    """Wait until it serves again."""
    async with asyncio.timeout(WITHIN):
        while world.credits[container][-1].state is not ContainerState.READY:
            await world.news()
    assert list(world.credits[container][-1].timeline) == ["unpark"]


async def test_a_parked_container_keeps_its_memory_and_gives_its_slot_back(walled: Harness) -> None:
    """Another one runs there; it comes back on the slot that is free, and knows what it knew."""
    container = await walled.bind(await walled.deploy(COUNT))
    assert await walled.run(container).output() == 1

    await parked(walled, container)

    assert not any(part.container for part in walled.reports[-1].slices)
    memory = walled.reports[-1].memory
    assert memory is not None
    assert 0 < memory.parked < GIB
    assert (await walled.run(container).refused()).reason is Refusal.DRAINING
    other = await walled.bind(await walled.deploy(COUNT), "cpu-0")
    taken = await walled.command(Unpark(epoch=walled.epoch, container=container, slice="cpu-0"))
    assert taken.reason == "slice_taken"
    assert (await walled.command(Unpark(epoch=walled.epoch, container=container, slice="cpu-1"))).ok
    await awake(walled, container)
    assert await walled.run(container).output() == 2
    assert await walled.run(other).output() == 1
    assert walled.agent._parts.containers.memory.parked == 0
