"""How much a container may have been sent without having read it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from pilotlight_runtime.calls.answer_room import AnswerRoom
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import MAX_UNSENT, GuestConnection
from tests.waiting import until


class SlowReader:
    """Has so much to read, and says when that has changed."""

    def __init__(self, unsent: int = 0) -> None:
        self.unsent_bytes = unsent
        self._read = asyncio.Event()

    @property
    def is_writable(self) -> bool:
        return not self.unsent_bytes

    async def wait_writable(self) -> None:
        await self._read.wait()

    def read_all(self) -> None:
        self.unsent_bytes = 0
        self._read.set()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_there_is_room_up_to_the_bound() -> None:
    """What is larger waits until the reader has read."""
    reader = SlowReader(unsent=60)
    room = AnswerRoom(reader, most=100)
    await room.take(40)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(room.take(1))
        await settle()
        assert not waiting.done()
        room.give_back(40)
        reader.read_all()
    assert room.held == 1


async def test_what_is_on_its_way_counts() -> None:
    """Until it was sent, and then as the reader's."""
    room = AnswerRoom(SlowReader(), most=100)
    await room.take(70)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(room.take(70))
        await settle()
        assert not waiting.done()
        room.give_back(70)
    assert room.held == 70


async def test_one_that_is_larger_than_all_of_it_comes_alone() -> None:
    """Else it would wait for ever; so would what a few unread bytes are in the way of."""
    room = AnswerRoom(SlowReader(), most=100)
    await room.take(500)
    assert room.held == 500

    reader = SlowReader(unsent=1)
    reader.__class__ = type("Nearly", (SlowReader,), {"is_writable": True})
    await AnswerRoom(reader, most=100).take(100)


async def test_who_has_read_too_little_asks_for_nothing() -> None:
    """An answer of nothing waits only while more than the bound is unread."""
    await AnswerRoom(SlowReader(unsent=100), most=100).take(0)
    assert not await AnswerRoom(SlowReader(unsent=101), most=100).take_within(0, 0.01)


async def test_who_waits_in_vain_takes_nothing() -> None:
    """Neither at the end of its time nor when it is cancelled."""
    reader = SlowReader(unsent=100)
    room = AnswerRoom(reader, most=100)
    assert not await room.take_within(1, 0.01)
    waiting = asyncio.ensure_future(room.take(1))
    await settle()
    waiting.cancel()
    await settle()
    assert room.held == 100
    reader.read_all()
    assert await room.take_within(1, 0.01)


async def test_a_guest_that_reads_slowly_gets_all_and_is_not_killed() -> None:
    """Twice as much as it is killed for, over a real socket."""
    ours, theirs = socket.socketpair()
    broken: list[Exception | None] = []

    def nothing(_: Any) -> None:
        """It says nothing."""

    connection = await GuestConnection.open(ours, on_frame=nothing, on_closed=broken.append)
    room, body, count = AnswerRoom(connection), b"x" * (8 << 20), 2 * MAX_UNSENT // (8 << 20)
    sent = 0

    async def answer(number: int) -> None:
        nonlocal sent
        await room.take(len(body))
        connection.send(guest.NestedResult(number=number, body=body))
        room.give_back(len(body))
        sent += 1

    theirs.settimeout(0)
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(answer(number))
        await until(lambda: sent >= 8)
        await settle()
        assert sent < count
        loop, left = asyncio.get_running_loop(), count * len(body)
        while left > 0:
            left -= len(await loop.sock_recv(theirs, 1 << 22))
    connection.close()
    await until(lambda: bool(broken))
    theirs.close()
    assert (sent, broken) == (count, [None])
