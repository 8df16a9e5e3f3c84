"""The launcher for tests: no walls and no process, a coroutine plays the guest.

FakeLauncher(guest)       `guest(spec, socket)` is the tenant's side; it returns the exit code .fail_next = error
the next start raises it .started, .running        all specs so far; the sandboxes not yet cleaned up
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Literal

from pilotlight_runtime.sandbox.freezer import CannotFreeze
from pilotlight_runtime.sandbox.sandbox_port import NO_CPU_TIMES, CpuTimes, Guarantees, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec

Guest = Callable[[SandboxSpec, socket.socket], Awaitable[int]]

FIRST_PID = 1 << 23
"""Above every pid of Linux (2 ** 22), so that a stray kill has no target."""


class FakeLauncher:
    name: Literal["bubblewrap"] = "bubblewrap"

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._pids = itertools.count(FIRST_PID)
        self.fail_next: Exception | None = None
        self.started: list[SandboxSpec] = []
        self.running: list[FakeSandbox] = []
        self.closed = False

    def guarantees(self) -> Guarantees:
        return Guarantees(
            own_host_uid=True,
            no_network=True,
            own_filesystem=True,
            own_processes=True,
            filtered_syscalls=True,
            no_new_privileges=True,
            devices_only_given=True,
            memory="cgroup",
            pids="cgroup",
            cpu="cgroup",
            kills_everything=True,
            dies_with_agent=True,
            notes=("a fake",),
        )

    async def start(self, spec: SandboxSpec) -> FakeSandbox:
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            raise error
        self.started.append(spec)
        sandbox = FakeSandbox(spec, self._guest, next(self._pids), self.running.remove)
        self.running.append(sandbox)
        return sandbox

    def close(self) -> None:
        self.closed = True


class FakeSandbox:
    """`stdout_writer` and `stderr_writer` are the guest's ends of the pipes."""

    def __init__(self, spec: SandboxSpec, guest: Guest, pid: int, on_gone: Callable[[FakeSandbox], None]) -> None:
        self.name = spec.name
        self.pid = pid
        self.socket, self._theirs = socket.socketpair()
        self.stdout_fd, self.stdout_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.stderr_fd, self.stderr_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.memory_peak = 0
        self.cpu = NO_CPU_TIMES
        self.cannot_freeze = ""
        """Why not; "": it can."""
        self.is_frozen = False
        self.limits = spec.limits
        self._on_gone = on_gone
        self._exit: SandboxExit | None = None
        self._ended = asyncio.Event()
        self._cleaned = False
        self._task = asyncio.ensure_future(guest(spec, self._theirs))
        self._task.add_done_callback(self._finish)

    def pids(self) -> tuple[int, ...]:
        return () if self._exit else (self.pid,)

    def memory_peak_bytes(self) -> int:
        return self.memory_peak

    def memory_bytes(self) -> int:
        return self.memory_peak

    def cpu_times(self) -> CpuTimes:
        return self.cpu

    async def freeze(self) -> None:
        if self.cannot_freeze:
            raise CannotFreeze(self.cannot_freeze)
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False

    def limit(self, limits: ResourceLimits) -> None:
        self.limits = limits

    def kill(self) -> None:
        self.end(SandboxExit(code=None, signal=9, reason="killed"))

    def end(self, how: SandboxExit) -> None:
        if self._exit is None:
            self._exit = how
            self._task.cancel()

    async def wait(self) -> SandboxExit:
        await self._ended.wait()
        if self._exit is None:
            raise AssertionError("an ended sandbox has an exit")
        return self._exit

    async def cleanup(self) -> None:
        if self._cleaned:
            return
        self._cleaned = True
        self.kill()
        await self._ended.wait()
        self.socket.close()
        os.close(self.stdout_fd)
        os.close(self.stderr_fd)
        self._on_gone(self)

    def _finish(self, task: asyncio.Future[int]) -> None:
        if self._exit is None:
            failed = task.cancelled() or task.exception() is not None
            self._exit = SandboxExit(code=1 if failed else task.result(), signal=None, reason="exited")
        elif not task.cancelled():
            task.exception()  # seen, so that asyncio does not complain about a guest that was killed anyway
        self._theirs.close()
        os.close(self.stdout_writer)
        os.close(self.stderr_writer)
        self._ended.set()
