"""Stops of single containers: who is told, and what is answered, on a real bus."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from pilotlight_autoscaler import container_stops
from pilotlight_autoscaler.container_stops import ContainerStops
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.bus import Bus, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.controller_questions import ContainerStopReply, StopContainer
from pilotlight_core.model.messages.node_messages import CommandReply, ContainerState, Drain
from tests.autoscaler.builders import report
from tests.builders.nodes import container

REGION = f"r{token(8)}"


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="container-stops-test") as bus:
        yield bus


@pytest.fixture
def world() -> World:
    """One node with a container that serves and one that is gone."""
    world = World()
    there = (container("ctr_1", running=1), container("ctr_2", state=ContainerState.GONE, slice="cpu-1"))
    world.on_report(report(*there), time.monotonic())
    return world


async def stop(
    bus: Bus, world: World, asked: StopContainer, *replies: CommandReply
) -> tuple[ContainerStopReply, list[Drain]]:
    """The answer, and the commands that the node got; it replies with `replies`, then not at all."""
    commands: list[Drain] = []
    left = list(replies)

    def on_command(_: str, message: Drain, to: str) -> None:
        commands.append(message)
        if left:
            bus.publish_nowait(to, left.pop(0))

    async with bus.listening({subjects.command(REGION, "n1"): on_command}):
        await bus.flush()
        answer = await ContainerStops(bus, world, region=REGION, stop_grace_s=30.0).stop(asked, 7)
    return answer, commands


@pytest.mark.parametrize(("within_ms", "given"), [(None, 30_000.0), (0.0, 0.0)])
@pytest.mark.parametrize("tenant", ["acme", ""])
async def test_a_container_is_told_to_end(
    bus: Bus, world: World, tenant: str, within_ms: float | None, given: float
) -> None:
    """With the platform's grace or the one that was asked for; it counts as leaving from then on."""
    asked = StopContainer(container="ctr_1", tenant=tenant, within_ms=within_ms, reason="because")

    answer, commands = await stop(bus, world, asked, CommandReply(ok=True))

    assert answer == ContainerStopReply(node="n1", within_ms=given)
    assert commands == [Drain(epoch=7, container="ctr_1", within_ms=given, reason="because")]
    assert "ctr_1" in world.draining


async def test_one_that_is_replaced_first_serves_until_another_is_ready(bus: Bus, world: World) -> None:
    """It does not count from then on, so that another starts; one that starts, leaves, is replaced itself or is of a
    node that drains is none, and nor is another version's.
    """
    asked = StopContainer(container="ctr_1", tenant="acme", replace_first=True)
    others = (
        container("ctr_3", state=ContainerState.LOADING), container("ctr_4", "ver_2"), container("ctr_5"),
        container("ctr_7"),
    )  # fmt: skip
    world.on_report(report(container("ctr_1"), *others, seq=2), time.monotonic())
    world.on_report(report(container("ctr_6"), node="n2", draining=True), time.monotonic())
    world.draining["ctr_5"] = world.replacing["ctr_7"] = time.monotonic()
    world.changed.clear()

    answer, commands = await stop(bus, world, asked)
    assert (answer, commands) == (ContainerStopReply(reason="replacing"), [])
    assert (set(world.draining), set(world.replacing)) == ({"ctr_5"}, {"ctr_1", "ctr_7"})
    assert "ver_1" in world.changed
    world.backoff.failed("ver_1", "acme", time.monotonic())
    answer, _ = await stop(bus, world, asked)
    assert answer == ContainerStopReply(reason="replacing", failing=True)

    del world.draining["ctr_5"]
    answer, commands = await stop(bus, world, asked, CommandReply(ok=True))
    assert (answer.node, [command.container for command in commands]) == ("n1", ["ctr_1"])
    assert (set(world.draining), set(world.replacing)) == ({"ctr_1"}, {"ctr_7"})


async def test_what_is_not_there_is_not_replaced(bus: Bus, world: World) -> None:
    """And does not count as leaving."""
    answer, _ = await stop(bus, world, StopContainer(container="ctr_9", tenant="acme", replace_first=True))

    assert answer == ContainerStopReply(reason="gone")
    assert (world.draining, world.replacing) == ({}, {})


@pytest.mark.parametrize("asked", [("ctr_1", "zoo"), ("ctr_2", "acme"), ("ctr_3", "")])
async def test_what_is_not_there_is_gone(bus: Bus, world: World, asked: tuple[str, str]) -> None:
    """Another tenant's, what has ended, and what never was: no node is asked."""
    answer, commands = await stop(bus, world, StopContainer(container=asked[0], tenant=asked[1]))

    assert (answer, commands) == (ContainerStopReply(reason="gone"), [])


@pytest.mark.parametrize(
    ("replies", "reason"),
    [((), "silent"), ((CommandReply(ok=False, reason="gone"),), "gone"),
     ((CommandReply(ok=False, reason="stale_epoch"),), "silent")],
)  # fmt: skip
async def test_only_what_its_node_says_is_gone_is_gone(
    bus: Bus, world: World, monkeypatch: pytest.MonkeyPatch, replies: tuple[CommandReply, ...], reason: str
) -> None:
    """A node that does not answer, or obeys a newer controller, is asked again."""
    monkeypatch.setattr(container_stops, "ANSWER_S", 0.2)

    answer, _ = await stop(bus, world, StopContainer(container="ctr_1"), *replies)

    assert answer == ContainerStopReply(reason=reason)
    assert not world.draining
