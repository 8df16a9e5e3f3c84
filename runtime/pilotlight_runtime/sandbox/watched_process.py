"""A process that is watched through its pidfd: what both kinds of sandbox have in common."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pilotlight_runtime.sandbox.exec_chain import ENV
from pilotlight_runtime.sandbox.kernel_files import read_kernel_file
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_port import CpuTimes, SandboxExit

END_S = 5.0
"""SIGKILL takes longer only while the kernel holds a process (a driver call, a dead network file system); then its
folders and uid stay taken until the next sweep.
"""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RETRY_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Spawned:
    process: subprocess.Popen[bytes]
    pidfd: int
    stdout_fd: int
    stderr_fd: int


def spawn(
    command: Sequence[str], *, inherit: Iterable[int], cwd: Path = Path("/"), env: dict[str, str] | None = None
) -> Spawned:
    """Start `command` in a session of its own, with only `inherit` and its output pipes open.

    Without `env` it gets the few fixed variables of a stage. Raises `SandboxNotStarted`, and then leaves nothing.
    """
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        try:
            stdout, stdout_child = _pipe(ours, theirs)
            stderr, stderr_child = _pipe(ours, theirs)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout_child,
                stderr=stderr_child,
                pass_fds=tuple(inherit),
                env=ENV if env is None else env,
                cwd=cwd,
                start_new_session=True,
            )
            ours.callback(process.wait)
            ours.callback(process.kill)
            pidfd = os.pidfd_open(process.pid)
        except OSError as error:
            raise SandboxNotStarted(f"{command[0]} could not be started: {error}") from error
        ours.pop_all()
    return Spawned(process=process, pidfd=pidfd, stdout_fd=stdout, stderr_fd=stderr)


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    ours.callback(os.close, reader)
    theirs.callback(os.close, writer)
    os.set_blocking(reader, False)
    return reader, writer


class ChildSandbox(ABC):
    """The half of the `Sandbox` port that does not depend on the kind of walls."""

    def __init__(self, name: str, spawned: Spawned, ours: socket.socket) -> None:
        self.name = name
        self.pid = spawned.process.pid
        self.socket = ours
        self.stdout_fd = spawned.stdout_fd
        self.stderr_fd = spawned.stderr_fd
        self._process = spawned.process
        self._pidfd = spawned.pidfd
        self._exit: SandboxExit | None = None
        self._ended = asyncio.Event()
        self._killed = False
        self._cleaned = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pidfd, self._reap)

    def kill(self) -> None:
        if self._exit is None:
            self._killed = True
        self._kill_all()

    async def wait(self) -> SandboxExit:
        await self._ended.wait()
        assert self._exit is not None  # noqa: S101 - set before the event
        return self._exit

    async def cleanup(self) -> None:
        if self._cleaned:
            return
        self._cleaned = True
        self.kill()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._ended.wait()
                    while not self._release():  # noqa: ASYNC110 - the kernel sends no event when a cgroup falls empty
                        await asyncio.sleep(RETRY_S)
        finally:
            self.socket.close()
            os.close(self.stdout_fd)
            os.close(self.stderr_fd)
            if self._exit is None:
                self._loop.remove_reader(self._pidfd)
                os.close(self._pidfd)

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        # Before the wait, which frees its pid for others: until then the pid surely means this sandbox.
        self._kill_all()
        self._exit = self._judge(self._process.wait(), killed=self._killed)
        self._ended.set()

    @abstractmethod
    def pids(self) -> tuple[int, ...]: ...

    @abstractmethod
    def memory_peak_bytes(self) -> int: ...

    @abstractmethod
    def _kill_all(self) -> None:
        """End every process that it can; also when the first one has been reaped."""

    @abstractmethod
    def _judge(self, returncode: int, *, killed: bool) -> SandboxExit:
        """Why it ended. `returncode` is as subprocess gives it: negative for a signal."""

    @abstractmethod
    def _release(self) -> bool:
        """Give back what the kernel kept for it; False while processes are still ending."""


def children(pid: int) -> tuple[int, ...]:
    try:
        return tuple(int(child) for child in read_kernel_file(f"/proc/{pid}/task/{pid}/children").split())
    except OSError:
        return ()


def descendants(pid: int) -> tuple[int, ...]:
    found = [pid]
    for one in found:
        found += children(one)
    return tuple(found)


def cpu_times_of(pids: Sequence[int]) -> CpuTimes:
    """What these processes, and their children that have ended, have used of processors."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = read_kernel_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
            ticks += sum(map(int, stat[11:15]))
    return CpuTimes(ticks * 1000 // TICKS_PER_S, runnable_ms(pids))


def runnable_ms(pids: Iterable[int]) -> int:
    """How long the first threads of these processes could have run and waited for a processor."""
    waited_ns = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            waited_ns += int(read_kernel_file(f"/proc/{pid}/schedstat").split()[1])
    return waited_ns // 1_000_000


def kill_process(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
