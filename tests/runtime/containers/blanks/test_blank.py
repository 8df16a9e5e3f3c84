"""A blank from its start to its end, on a launcher without processes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotlight_runtime.containers.blanks import blank as blank_module
from pilotlight_runtime.containers.blanks.blank import Blank, BlankDied, network_unknown
from pilotlight_runtime.containers.blanks.resource_limits import BASE
from pilotlight_runtime.guest.frames import FRAMES, Hello, Leave, Loaded, encode, header
from pilotlight_runtime.guest.guest_connection import GuestConnection
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher, Guest
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import SandboxSpec
from tests.runtime.containers.fake_guests import greeting_guest, silent_guest, starter_of
from tests.waiting import until


@asynccontextmanager
async def started(folder: Path, guest: Guest) -> AsyncIterator[Blank]:
    """A blank with that guest, destroyed after the block."""
    async with asyncio.TaskGroup() as group:
        blank = await starter_of(FakeLauncher(guest), folder, group).start(BASE)
        yield blank
        await blank.destroy()


async def test_a_sandbox_that_ends_before_its_hello_never_becomes_ready(tmp_path: Path, anyio_backend: str) -> None:
    """Instead of waiting for ever, a container is told how the sandbox ended."""

    async def ends(_: SandboxSpec, _sock: socket.socket) -> int:
        return 3

    async with started(tmp_path, ends) as blank:
        with pytest.raises(BlankDied, match="ended before its guest was ready"):
            await blank.wait_ready()

        assert not blank.is_ready
        assert blank.exit == SandboxExit(code=3, signal=None, reason="exited")


async def test_a_guest_that_says_nothing_is_killed(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its imports hang."""
    monkeypatch.setattr(blank_module, "HELLO_S", 0.01)
    async with started(tmp_path, silent_guest) as blank:
        with pytest.raises(BlankDied, match=r"not ready after 0\.01 s"):
            await blank.wait_ready()

        assert (await blank.sandbox.wait()).reason == "killed"


async def test_a_guest_that_sends_nonsense_is_killed_and_the_reason_kept(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process gets a moment to end by itself first."""
    monkeypatch.setattr(blank_module, "END_S", 0.01)

    async def babbles(spec: SandboxSpec, sock: socket.socket) -> int:
        sock.sendall(header(3) + b"abc")
        return await silent_guest(spec, sock)

    async with started(tmp_path, babbles) as blank:
        assert (await blank.sandbox.wait()).reason == "killed"
        assert "cannot be read" in blank.broken


async def test_only_a_hello_makes_it_ready(tmp_path: Path, anyio_backend: str) -> None:
    """Another frame before it changes nothing."""

    async def loads_first(_: SandboxSpec, sock: socket.socket) -> int:
        sock.sendall(encode(Loaded()) + encode(Hello(pid=1, ms=7.0, frames=FRAMES)))
        return await silent_guest(_, sock)

    async with started(tmp_path, loads_first) as blank:
        await blank.wait_ready()

        assert blank.is_ready
        assert blank.hello_ms == 7.0


@pytest.mark.parametrize(("frames", "said"), [((FRAMES[0] + 1, 3), f"{FRAMES[0] + 1}.3"), ((0, 0), "0.0")])
async def test_a_guest_with_other_frames_is_refused_by_name(
    tmp_path: Path, anyio_backend: str, frames: tuple[int, int], said: str
) -> None:
    """A later major version, and that of release 0.1, which says none; the guest is ended."""

    async def of_another_release(_: SandboxSpec, sock: socket.socket) -> int:
        sock.sendall(encode(Hello(pid=1, ms=1.0, frames=frames)))
        return await silent_guest(_, sock)

    async with started(tmp_path, of_another_release) as blank:
        ours = rf"this agent 1\.{FRAMES[1]}"
        with pytest.raises(BlankDied, match=rf"its guest speaks version {said} of the frames, {ours}"):
            await blank.wait_ready()

        assert not blank.is_ready
        assert (await blank.sandbox.wait()).reason == "killed"


def test_a_guest_that_knows_no_way_out_is_given_none() -> None:
    """Its base environment is older than the agent: nobody would tell the function where its proxy is."""
    assert "its guest speaks version 1.0 of the frames" in network_unknown((1, 0))
    assert "network= needs it" in network_unknown((1, 0))
    assert network_unknown(FRAMES) == network_unknown((1, 9)) == ""


async def test_a_later_minor_version_is_taken(tmp_path: Path, anyio_backend: str) -> None:
    """What it has more is ignored."""

    async def newer(_: SandboxSpec, sock: socket.socket) -> int:
        sock.sendall(encode(Hello(pid=1, ms=1.0, frames=(FRAMES[0], 99))))
        return await silent_guest(_, sock)

    async with started(tmp_path, newer) as blank:
        await blank.wait_ready()


async def test_a_container_gets_the_frames_from_the_hand_over_on(tmp_path: Path, anyio_backend: str) -> None:
    """And its frames reach the guest."""
    asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def answers(_: SandboxSpec, sock: socket.socket) -> int:
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        sock.sendall(encode(Hello(pid=1, ms=1.0, frames=FRAMES)))
        asked.set_result(await asyncio.get_running_loop().sock_recv(sock, 100))
        sock.sendall(encode(Loaded()))
        return await silent_guest(_, sock)

    frames: asyncio.Queue[Any] = asyncio.Queue()
    async with started(tmp_path, answers) as blank:
        await blank.wait_ready()

        connection = blank.hand_over(frames.put_nowait)
        connection.send(Leave())

        assert await frames.get() == Loaded()
        assert await asked == encode(Leave())


async def test_its_end_is_reported_once(tmp_path: Path, anyio_backend: str) -> None:
    """To whoever has it by then."""
    ends: list[SandboxExit] = []
    async with started(tmp_path, greeting_guest) as blank:
        blank.on_exit = ends.append
        await blank.wait_ready()

        blank.sandbox.kill()

        await until(lambda: ends)
        assert ends == [blank.exit] == [SandboxExit(code=None, signal=9, reason="killed")]
        assert not blank.is_ready


async def test_nothing_is_left_of_one_that_is_destroyed(tmp_path: Path, anyio_backend: str) -> None:
    """No file and no sandbox."""
    async with started(tmp_path, greeting_guest) as blank:
        (blank.code / "app.py").write_text("pass")

        await blank.destroy()

        assert (await blank.sandbox.wait()).reason == "killed"
        assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


async def test_one_that_is_destroyed_while_it_is_connected_closes_what_it_opens(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`destroy` cannot: there is no connection yet."""
    asked, go, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Late:
        close = staticmethod(closed.set)

    async def opened_late(*_: object, **__: object) -> Late:
        asked.set()
        await go.wait()
        return Late()

    monkeypatch.setattr(GuestConnection, "open", opened_late)
    async with started(tmp_path, silent_guest) as blank:
        await asked.wait()
        await blank.destroy()
        assert not closed.is_set()
        go.set()
        await closed.wait()
