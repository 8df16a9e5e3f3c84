"""What the fleet consists of, for questions about it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pilotlight_core.model.devices import DeviceReport, MigMode
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_gateway.fleet.fleet_questions import Inventory
from pilotlight_placement.fleet.fleet import Fleet
from tests.builders.nodes import cpu_slot, gpu_device, node_report


def report(node: str = "n1", *gpus: DeviceReport, seq: int = 1, holder: str = "", **more: Any) -> NodeReport:
    return node_report(node, seq, **{"slices": (cpu_slot(container=holder),), "devices": gpus} | more)


def identity(fleet: Fleet) -> Fleet:
    return fleet


async def test_the_fleet_is_put_together_once_as_long_as_it_consists_of_the_same() -> None:
    """Whoever runs where, whatever drains or is being changed: that is no other fleet."""
    inventory = Inventory()
    first = await inventory.ask([report("n1", gpu_device())], identity)

    busy = report("n1", gpu_device(changing=True, withdrawn="Xid 79"), seq=2, holder="ctr_1", draining=True)
    assert await inventory.ask([busy], identity) is first
    assert not first.nodes.draining
    assert not first.nodes.withdrawn


@pytest.mark.parametrize(
    "after",
    [
        [],
        [report("n1", gpu_device(), instance="another")],
        [report("n1", gpu_device()), report("n2")],
        [report("n1", gpu_device(), gpu_device("GPU-2"))],
        [report("n1", gpu_device(mig=MigMode.ON))],
        [report("n1", gpu_device(), zone="b")],
        [report("n1", gpu_device(), slices=())],
    ],
)
async def test_it_is_put_together_anew_when_that_changes(after: list[NodeReport]) -> None:
    """Nodes that come, go, or are started anew; GPUs, modes, places."""
    inventory = Inventory()
    first = await inventory.ask([report("n1", gpu_device())], identity)

    again = await inventory.ask(after, identity)

    assert again is not first
    assert set(again.places) == {each.node for each in after}


async def test_one_question_at_a_time() -> None:
    """Many of them wait for their turns, and the loop goes on meanwhile."""
    inventory, at_once, most = Inventory(), 0, 0

    def question(_: Fleet) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        at_once -= 1

    await asyncio.gather(*(inventory.ask([report()], question) for _ in range(20)))

    assert most == 1


async def test_who_gives_up_leaves_no_question_beside_the_next() -> None:
    """Its thread goes on: whoever comes after it waits until it is off the fleet."""
    inventory, asked, go_on = Inventory(), threading.Event(), threading.Event()
    there: list[str] = []

    def slow(_: Fleet) -> None:
        there.append("in")
        asked.set()
        go_on.wait(30)
        there.append("out")

    given_up = asyncio.create_task(inventory.ask([report()], slow))
    await asyncio.to_thread(asked.wait, 30)
    given_up.cancel()
    following = asyncio.create_task(inventory.ask([report()], lambda _: there.append("next")))
    await asyncio.wait([given_up])
    done, _ = await asyncio.wait([following], timeout=0.2)
    assert not done
    go_on.set()
    await following

    assert there == ["in", "out", "next"]
