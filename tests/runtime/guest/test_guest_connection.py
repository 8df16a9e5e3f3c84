"""The agent's end, in an event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_runtime.guest.frames import (
    GROUP,
    GROUP_BYTES,
    MAX_FRAME,
    SMALL_FRAME,
    FrameDecoder,
    FromAgent,
    Hello,
    Invoke,
    Leave,
    Load,
    Loaded,
    MalformedFrame,
    Result,
    encode,
    header,
)
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone, GuestSlow
from tests.runtime.guest.apps import plain
from tests.runtime.guest.harness import APPS, PATIENCE_S, Guest, spec_of


@pytest.fixture
def anyio_backend() -> str:
    """The client is asyncio's."""
    return "asyncio"


class Ears:
    """What a connection tells."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[Any] = asyncio.Queue()
        self.closed: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    async def open(self, sock: socket.socket, **more: Any) -> GuestConnection:
        return await GuestConnection.open(
            sock, on_frame=self.frames.put_nowait, on_closed=self.closed.set_result, **more
        )

    async def frame(self) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await self.frames.get()

    async def end(self) -> Exception | None:
        async with asyncio.timeout(PATIENCE_S):
            return await self.closed


async def test_a_guests_life_over_the_client() -> None:
    """Load, a large call, Leave; and the end is told once, without an error."""
    ears = Ears()
    with Guest() as guest:
        connection = await ears.open(guest.socket)
        connection.send(Load(spec=spec_of(plain.echo), root=str(APPS)))
        while not isinstance(await ears.frame(), Loaded):
            pass
        connection.set_frame_limit(MAX_FRAME)
        connection.send(Invoke(call_id="a", input=values.encode({"value": bytes(10**7)})))
        result = await ears.frame()
        assert isinstance(result, Result)
        assert values.decode(result.output) == bytes(10**7)
        connection.send(Leave())
        assert await ears.end() is None
        told = connection.statistics()
        assert (told.sent, told.received, told.unsent_bytes, told.open) == (3, 4, 0, False)
        with pytest.raises(GuestGone):
            connection.send(Leave())


async def test_nonsense_from_a_guest_closes_the_connection() -> None:
    """A tenant may write what it likes into the socket: the agent is told, and reads no further."""
    ours, theirs = socket.socketpair()
    with theirs:
        ears = Ears()
        await ears.open(ours)
        theirs.sendall(encode(Hello(pid=1, ms=2.0)) + header(3) + b"abc" + encode(Hello(pid=2, ms=2.0)))
        assert isinstance(await ears.end(), MalformedFrame)

    assert ears.frames.empty()


async def test_a_frame_is_as_large_as_it_may_be(anyio_backend: str) -> None:
    """Small ones only, until more is allowed; memory for a larger one is never given."""
    ours, theirs = socket.socketpair()
    with theirs:
        ears = Ears()
        connection = await ears.open(ours)
        connection.set_frame_limit(2 * SMALL_FRAME)
        theirs.sendall(header(SMALL_FRAME + 1))
        theirs.sendall(bytes(SMALL_FRAME // 8))
        connection.set_frame_limit(SMALL_FRAME)
        theirs.sendall(bytes(1))
        error = await ears.end()

    assert isinstance(error, MalformedFrame)
    assert f"{SMALL_FRAME} is the most" in str(error)


async def test_an_error_in_the_callback_closes_the_connection() -> None:
    """What the agent cannot digest ends this guest, and is told."""
    ours, theirs = socket.socketpair()
    ears = Ears()
    mistake = RuntimeError("cannot digest")

    def fail(frame: object) -> None:
        raise mistake

    with theirs:
        await GuestConnection.open(ours, on_frame=fail, on_closed=ears.closed.set_result)
        theirs.sendall(encode(Hello(pid=1, ms=2.0)))
        assert await ears.end() is mistake


async def test_nothing_is_told_after_close() -> None:
    """Closing within a frame's callback ends it there."""
    ours, theirs = socket.socketpair()
    ears = Ears()
    seen: list[Any] = []

    def once(frame: Any) -> None:
        seen.append(frame.pid)
        connection.close()

    with theirs:
        connection = await GuestConnection.open(ours, on_frame=once, on_closed=ears.closed.set_result)
        theirs.sendall(encode(Hello(pid=1, ms=2.0)) + encode(Hello(pid=2, ms=2.0)))
        assert await ears.end() is None

    assert seen == [1]


async def _arrived(sock: socket.socket) -> list[Any]:
    """What a guest reads in one piece."""
    inbox = FrameDecoder(FromAgent)
    data = await asyncio.get_running_loop().sock_recv(sock, 2**16)
    inbox.space()[: len(data)] = data
    return inbox.filled(len(data))


async def test_frames_of_one_turn_are_written_in_groups(anyio_backend: str) -> None:
    """In order; eight at once, so that the guest has work, and the rest at the end of the turn."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)  # noqa: FBT003 - its only argument
        connection = await Ears().open(ours)
        frames = [Invoke(call_id=str(number)) for number in range(GROUP + 3)]
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        for frame in frames[: GROUP - 1]:
            connection.send(frame)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        assert connection.statistics().unsent_bytes == sum(len(encode(frame)) for frame in frames[: GROUP - 1])
        for frame in frames[GROUP - 1 :]:
            connection.send(frame)

        assert await _arrived(theirs) == frames[:GROUP]
        assert await _arrived(theirs) == frames[GROUP:]
        assert (connection.statistics().sent, connection.statistics().unsent_bytes) == (GROUP + 3, 0)
        connection.close()


async def test_a_large_frame_goes_at_once_behind_those_before_it(anyio_backend: str) -> None:
    """It is not copied to join them, and what it waits for is counted."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)  # noqa: FBT003 - its only argument
        connection = await Ears().open(ours)
        frames = [Invoke(call_id="a"), Invoke(call_id="b", input=bytes(2 * GROUP_BYTES)), Invoke(call_id="c")]
        for frame in frames:
            connection.send(frame)

        inbox, read = FrameDecoder(FromAgent), list[Any]()
        while len(read) < 3:
            read += inbox.filled(await asyncio.get_running_loop().sock_recv_into(theirs, inbox.space()))
        assert read == frames
        connection.close()


async def test_what_is_not_written_ends_with_the_connection(anyio_backend: str) -> None:
    """Nothing of it is sent later, and its end is told once."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)  # noqa: FBT003 - its only argument
        ears = Ears()
        connection = await ears.open(ours)
        connection.send(Invoke(call_id="a"))
        connection.close()

        assert await ears.end() is None
        assert theirs.recv(100) == b""
        assert connection.statistics().unsent_bytes == 0


async def test_a_guest_that_does_not_read_is_bounded() -> None:
    """Up to the bound frames wait; beyond it they are refused, and when it reads again all is well."""
    ours, theirs = socket.socketpair()
    with theirs:
        ears = Ears()
        connection = await ears.open(ours, max_unsent=10**6)
        frame = Invoke(call_id="a", input=bytes(300_000))
        with pytest.raises(GuestSlow):
            _repeat(10, lambda: connection.send(frame))
        assert connection.statistics().unsent_bytes <= 10**6
        theirs.settimeout(0)
        async with asyncio.timeout(PATIENCE_S):
            reading = asyncio.ensure_future(_drain(theirs))
            await connection.wait_writable()
            reading.cancel()
        connection.send(Leave())
        connection.close()
        assert await ears.end() is None


def _repeat(times: int, act: Callable[[], None]) -> None:
    for _ in range(times):
        act()


async def _drain(sock: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(sock, 2**20):
        pass
