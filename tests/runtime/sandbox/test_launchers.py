"""The contract of the port, held by both launchers and by the fake."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.launchers import launcher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted, SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_port import Launcher, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import SandboxSpec
from tests.runtime.sandbox.conftest import Starter, read_output, read_value

#: Echoes until it is told to end: "e" for code 7.
ECHO = """
while (word := agent.recv(1)) != b"e":
    tell(word.decode())
sys.exit(7)"""


async def _echo(_: SandboxSpec, theirs: socket.socket) -> int:
    theirs.settimeout(0)
    loop = asyncio.get_running_loop()
    while (word := await loop.sock_recv(theirs, 1)) != b"e":
        await loop.sock_sendall(theirs, f'"{word.decode()}"\n'.encode())
    return 7


@pytest.fixture(params=["bubblewrap", "process", "fake"])
def any_launcher(request: Any) -> Iterator[Launcher]:
    made = FakeLauncher(_echo) if request.param == "fake" else launcher(request.param)
    yield made
    made.close()


async def test_a_guest_talks_ends_and_is_cleaned_up(any_launcher: Launcher, start: Starter) -> None:
    """Its exit stays the same for every caller and after the cleanup."""
    sandbox = await start(ECHO, using=any_launcher)
    assert sandbox.name == "test"
    assert sandbox.pid in sandbox.pids()

    sandbox.socket.sendall(b"x")
    assert await read_value(sandbox) == "x"
    sandbox.socket.send(b"e")

    ends = list(await asyncio.gather(sandbox.wait(), sandbox.wait()))
    assert ends == [SandboxExit(code=7, signal=None, reason="exited")] * 2
    assert await sandbox.wait() == ends[0]
    assert sandbox.pids() == ()
    assert await read_value(sandbox) is None
    assert (read_output(sandbox.stdout_fd), read_output(sandbox.stderr_fd)) == ("", "")

    sandbox.kill()
    assert await sandbox.wait() == ends[0]
    await sandbox.cleanup()
    await sandbox.cleanup()
    sandbox.kill()
    assert sandbox.socket.fileno() == -1
    assert sandbox.memory_peak_bytes() >= 0


async def test_a_killed_guest_is_told_from_one_that_ended(any_launcher: Launcher, start: Starter) -> None:
    """By the reason of its exit."""
    sandbox = await start(ECHO, using=any_launcher)
    sandbox.socket.sendall(b"x")
    await read_value(sandbox)

    sandbox.kill()
    sandbox.kill()

    assert await sandbox.wait() == SandboxExit(code=None, signal=9, reason="killed")


async def test_cleanup_ends_what_still_runs(any_launcher: Launcher, start: Starter) -> None:
    """As a kill does."""
    sandbox = await start(ECHO, using=any_launcher)

    await sandbox.cleanup()

    assert (await sandbox.wait()).reason == "killed"


async def test_a_name_is_free_again_after_cleanup_and_no_descriptor_is_left(
    any_launcher: Launcher, start: Starter
) -> None:
    """However often it is used."""
    await (await start(ECHO, using=any_launcher)).cleanup()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - one descriptor of its own either way

    for _ in range(3):
        await (await start(ECHO, using=any_launcher)).cleanup()

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_pipes_do_not_block(any_launcher: Launcher, start: Starter) -> None:
    """The agent's loop reads them; the socket blocks until it is set otherwise."""
    sandbox = await start(ECHO, using=any_launcher)

    for fd in (sandbox.stdout_fd, sandbox.stderr_fd):
        with pytest.raises(BlockingIOError):
            os.read(fd, 1)
    assert sandbox.socket.getblocking()


async def test_a_fake_does_as_it_was_told(spec: SandboxSpec) -> None:
    """It fails, ends for memory, and lists what it has started."""
    fake = FakeLauncher(_echo)
    fake.fail_next = SandboxNotStarted("told to")

    with pytest.raises(SandboxNotStarted, match="told to"):
        await fake.start(spec)
    sandbox = await fake.start(spec)
    sandbox.end(SandboxExit(code=None, signal=9, reason="memory", oom=True))

    assert (await sandbox.wait()).reason == "memory"
    assert (fake.started, fake.running) == ([spec], [sandbox])
    await sandbox.cleanup()
    fake.close()
    assert (fake.running, fake.closed) == ([], True)


def test_the_name_is_the_operators_word() -> None:
    """An unknown one is refused with the known ones."""
    with pytest.raises(SandboxUnavailable, match="no sandbox is called 'docker'"):
        launcher("docker")
