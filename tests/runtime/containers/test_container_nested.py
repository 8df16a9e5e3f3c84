"""What a guest sends about nested calls, from its container to the node's."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from pilotlight_runtime.calls import nested_asks
from pilotlight_runtime.calls.nested_asks import NestedAsks
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.containers.container_nested import MOST_A_SECOND, ContainerNested
from pilotlight_runtime.guest import frames as guest
from tests.builders.calls import a_room, run
from tests.waiting import until


class SilentBus:
    """Nobody answers."""

    async def request(self, *_: Any) -> object:
        return await asyncio.Event().wait()

    def publish_nowait(self, *_: Any, **__: Any) -> None:
        pass


class Box:
    """A container with one call, `a`."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.sent: list[guest.GuestFrame] = []
        self.kills: list[str] = []
        self.call = AcceptedCall(run(), 0.0, 0.0)
        self.asks = NestedAsks(
            SilentBus(), cast("BodyTransfers", None), group, region="local", node="n1", clock=lambda: 0.0
        )
        self.nested = ContainerNested(
            self.asks, "c1", find_running=lambda name: self.call if name == "a" else None, send=self.sent.append,
            room=a_room(), kill=self.kills.append,
        )  # fmt: skip

    def ask(self, number: int, call_id: str = "a") -> None:
        """The guest asks for one."""
        self.nested.on_frame(guest.NestedCall(call_id=call_id, number=number, function="shop.f"))

    def codes(self) -> list[str]:
        """The codes of the problems that the guest got."""
        return [msgspec.json.decode(each.problem)["code"] for each in self.sent if isinstance(each, guest.NestedResult)]


async def test_a_call_that_does_not_run_here_asks_for_nothing() -> None:
    """It may have ended a moment ago: the guest is told, and lives."""
    async with asyncio.TaskGroup() as group:
        box = Box(group)
        box.ask(1, "b")
        assert box.codes() == ["cancelled"]
        assert (len(box.asks), box.kills) == (0, [])


async def test_what_is_left_is_ended() -> None:
    """By its number; an unknown one is nothing."""
    async with asyncio.TaskGroup() as group:
        box = Box(group)
        box.ask(1)
        box.nested.on_frame(guest.NestedLeave(number=2))
        assert len(box.asks) == 1
        box.nested.on_frame(guest.NestedLeave(number=1))
        await until(lambda: box.codes() == ["cancelled"])


async def test_a_guest_that_breaks_a_rule_is_killed() -> None:
    """What the node's asks say of it."""
    async with asyncio.TaskGroup() as group:
        box = Box(group)
        box.ask(1)
        box.ask(1)
        assert box.kills == ["it gave two nested calls one number"]
        box.asks.end(box.call)


async def test_the_rate_of_frames_is_bounded() -> None:
    """A second later it may send as many again."""
    async with asyncio.TaskGroup() as group:
        box = Box(group)
        for second in range(2):
            for number in range(MOST_A_SECOND):
                box.ask(number, "b")
            assert box.kills == [], second
            box.nested.tick()
        for number in range(MOST_A_SECOND + 1):
            box.ask(number, "b")
        assert len(box.kills) == 1


async def test_what_the_node_itself_refuses_counts_as_needless(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered at once, so nothing else would bound its rate."""
    monkeypatch.setattr(nested_asks, "MOST_OF_CONTAINER", 0)
    async with asyncio.TaskGroup() as group:
        box = Box(group)
        for number in range(MOST_A_SECOND):
            box.ask(number)
        assert (set(box.codes()), box.kills) == ({"nested_refused"}, [])
        box.ask(0)
        assert len(box.kills) == 1
