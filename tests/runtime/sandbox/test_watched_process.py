"""A process that is watched through its pidfd, whatever walls are around it."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox import watched_process
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.watched_process import ChildSandbox, children, descendants, kill_process, spawn
from tests.runtime.sandbox.conftest import read_output, sleeper

STAYS = "import time; time.sleep(1000)"


class Watched(ChildSandbox):
    """One process and no walls; `releases` are the answers of the kernel, the last one again and again."""

    releases: tuple[bool, ...] = (True,)
    tries = 0

    def pids(self) -> tuple[int, ...]:
        return () if self._exit else (self.pid,)

    def memory_peak_bytes(self) -> int:
        return 0

    def _kill_all(self) -> None:
        if self._exit is None:
            kill_process(self.pid)

    def _judge(self, returncode: int, *, killed: bool) -> SandboxExit:
        return SandboxExit(code=returncode, signal=None, reason="killed" if killed else "exited")

    def _release(self) -> bool:
        self.tries += 1
        return self.releases[min(self.tries, len(self.releases)) - 1]


Watch = Callable[[str], Watched]


@pytest.fixture
async def watch(anyio_backend: str) -> AsyncIterator[Watch]:
    """Run Python code and watch it; cleaned up after the test."""
    made: list[Watched] = []

    def start(code: str) -> Watched:
        ours, theirs = socket.socketpair()
        with theirs:
            spawned = spawn([sys.executable, "-I", "-S", "-c", code], inherit=(theirs.fileno(),))
        made.append(Watched("test", spawned, ours))
        return made[-1]

    yield start
    for sandbox in made:
        await sandbox.cleanup()


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted


def test_a_program_that_is_not_there_leaves_nothing() -> None:
    """No pipe stays open."""
    before = descriptors()

    with pytest.raises(SandboxNotStarted, match="/nowhere/program could not be started"):
        spawn(["/nowhere/program"], inherit=())

    assert descriptors() == before


def test_it_inherits_what_it_is_given_and_nothing_else(tmp_path: Path) -> None:
    """It leads a session of its own, with few fixed variables. (3 is the folder that it lists.)"""
    with (tmp_path / "secret").open("wb") as secret:
        os.set_inheritable(secret.fileno(), True)  # noqa: FBT003 - its only argument
        code = (
            "import os\nprint(os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')), 'HOME' in os.environ)"
        )
        spawned = spawn([sys.executable, "-I", "-S", "-c", code], inherit=())

        assert spawned.process.wait(30) == 0
        assert read_output(spawned.stdout_fd) == "True ['0', '1', '2', '3'] False\n"
    for fd in (spawned.pidfd, spawned.stdout_fd, spawned.stderr_fd):
        os.close(fd)


async def test_an_end_is_told_from_a_kill(watch: Watch) -> None:
    """Who kills one that has ended changes nothing."""
    ended, killed = watch("raise SystemExit(3)"), watch(STAYS)

    assert await ended.wait() == SandboxExit(code=3, signal=None, reason="exited")
    ended.kill()
    killed.kill()

    assert (await killed.wait()).reason == "killed"
    assert (await ended.wait()).reason == "exited"
    assert killed.pids() == ()


async def test_cleanup_asks_until_the_kernel_lets_go(watch: Watch) -> None:
    """Once; a second cleanup does nothing."""
    sandbox = watch(STAYS)
    sandbox.releases = (False, False, True)

    await sandbox.cleanup()
    await sandbox.cleanup()

    assert sandbox.tries == 3
    assert sandbox.socket.fileno() == -1


async def test_cleanup_gives_up_after_its_bound(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may hold a process; our descriptors are closed all the same."""
    monkeypatch.setattr(watched_process, "END_S", 1.0)
    before = descriptors()
    sandbox = watch(STAYS)
    sandbox.releases = (False,)

    await sandbox.cleanup()

    assert sandbox.tries > 1
    assert descriptors() == before


def test_a_process_is_found_with_everyone_below_it() -> None:
    """One that is gone has no children, and killing it is no error."""
    with sleeper() as process:
        assert process.pid in children(os.getpid())
        assert process.pid in descendants(os.getpid())
        kill_process(process.pid)
        assert process.wait(20) == -signal.SIGKILL

    assert children(process.pid) == ()
    kill_process(process.pid)
