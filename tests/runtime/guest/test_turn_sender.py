"""The chunks of one turn of a guest's event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest

from pilotlight_runtime.guest import turn_sender
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import CHUNK_GROUP, ChunkOut, FrameDecoder, FromGuest, Loaded
from pilotlight_runtime.guest.turn_sender import TurnSender
from tests.waiting import wait_until


class HandTurned:
    """A loop whose turns are a test's."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []

    def call_soon(self, callback: Callable[[], object]) -> None:
        self.soon.append(callback)

    def end_turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Guest:
    """A sender, its loop, and the agent's end of its socket."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self.loop = HandTurned()
        self.turns = TurnSender(Channel(ours), cast("Any", self.loop))
        self._agent = theirs
        self._decoder = FrameDecoder(FromGuest)

    def heard(self) -> list[object]:
        """What has arrived since."""
        try:
            return self._decoder.filled(self._agent.recv_into(self._decoder.space(), 0, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return []

    def has_heard(self, frame: ChunkOut) -> bool:
        """Whether that has arrived, and nothing else since."""
        return self.heard() == [frame]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn is long."""
    monkeypatch.setattr(turn_sender, "LONG_TURN_S", 3_600.0)


@pytest.fixture
def guest() -> Iterator[Guest]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Guest(ours, theirs)


def chunks(first: int, count: int) -> list[ChunkOut]:
    return [ChunkOut(call_id=str(number), seq=1, data=b"x") for number in range(first, first + count)]


@pytest.mark.usefixtures("patient")
def test_the_chunks_of_a_turn_go_at_its_end(guest: Guest) -> None:
    """Of however many streams; and those of the next turn at the end of that."""
    for first in (0, 3):
        for frame in chunks(first, 3):
            guest.turns.send_soon(frame)
        assert guest.heard() == []
        guest.loop.end_turn()
        assert guest.heard() == chunks(first, 3)


@pytest.mark.usefixtures("patient")
def test_a_full_group_goes_before_and_what_is_sent_at_once_behind(guest: Guest) -> None:
    """In the order in which they were said."""
    for frame in chunks(0, CHUNK_GROUP + 1):
        guest.turns.send_soon(frame)
    assert guest.heard() == chunks(0, CHUNK_GROUP)
    guest.turns.send(Loaded())
    assert guest.heard() == [*chunks(CHUNK_GROUP, 1), Loaded()]


def test_code_that_blocks_its_loop_holds_nothing_up(guest: Guest) -> None:
    """Its turn never ends here: a thread sends what waits."""
    for frame in chunks(0, 3):
        guest.turns.send_soon(frame)
        wait_until(partial(guest.has_heard, frame), "it is sent")


async def test_on_a_real_loop(anyio_backend: str) -> None:
    """The turn ends when the loop looks for what is next."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)  # noqa: FBT003 - its only argument
        TurnSender(Channel(ours), asyncio.get_running_loop()).send_soon(Loaded())
        decoder = FrameDecoder(FromGuest)
        count = await asyncio.get_running_loop().sock_recv_into(theirs, decoder.space())
        assert decoder.filled(count) == [Loaded()]
