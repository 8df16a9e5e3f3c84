"""Ends of containers: asked of the controller that leads, on a real bus."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.controller_questions import ContainerStopReply, StopContainer
from pilotlight_gateway.fleet.container_stopper import BusStopper, ContainerStopper, MemoryStopper

ASKED = StopContainer(container="ctr_1", tenant="acme", within_ms=5.0, reason="because")
ENDS = ContainerStopReply(node="n1", within_ms=5.0)


async def told(bus: Bus, other: Bus, reply: ContainerStopReply) -> ContainerStopReply | None:
    """What comes of a stop that the controller answers with `reply`."""
    region, heard = f"r{token(8)}", []

    def answer(_: str, message: object, to: str) -> None:
        heard.append(message)
        other.publish_nowait(to, reply)

    async with other.listening({subjects.stop_container(region): answer}):
        await other.flush()
        ended = await BusStopper(bus, region=region).stop(ASKED)
    assert heard == [ASKED]
    return ended


async def test_the_controller_that_leads_ends_it(bus: Bus, other: Bus) -> None:
    """The caller hears where, or that there is none."""
    assert await told(bus, other, ENDS) == ENDS
    assert await told(bus, other, ContainerStopReply(reason="gone")) is None
    replacing = ContainerStopReply(reason="replacing")
    assert await told(bus, other, replacing) == replacing


async def test_a_node_that_is_silent_is_no_node_without_it(bus: Bus, other: Bus) -> None:
    """The caller asks again."""
    with pytest.raises(Unavailable, match="does not answer"):
        await told(bus, other, ContainerStopReply(reason="silent"))


@pytest.mark.parametrize("real", [True, False])
async def test_while_nobody_leads_nothing_ends(bus: Bus, real: bool) -> None:
    """The caller is told when to ask again."""
    stopper: ContainerStopper = BusStopper(bus, region=f"r{token(8)}") if real else MemoryStopper(leads=False)
    with pytest.raises(Unavailable, match="No controller leads") as refused:
        await stopper.stop(ASKED)

    assert (refused.value.wire_code, refused.value.retry_after) == ("starting", 2.0)


async def test_in_memory_a_container_ends_for_its_tenant_and_for_operators() -> None:
    """As over the bus."""
    stopper = MemoryStopper(tenants={"ctr_1": "acme"})

    assert await stopper.stop(ASKED) == ENDS
    assert await stopper.stop(StopContainer(container="ctr_1")) is not None
    assert await stopper.stop(StopContainer(container="ctr_1", tenant="zoo")) is None
    assert await stopper.stop(StopContainer(container="ctr_2")) is None
