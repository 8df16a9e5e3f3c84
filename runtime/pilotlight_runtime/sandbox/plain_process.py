"""The sandbox for development by one tenant: a plain process with rlimits, used only if asked for by name.

It stops mistakes, not attackers: the code sees the host's files, network and processes as the agent does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from contextlib import ExitStack
from typing import Literal

from pilotlight_runtime.sandbox.descriptors import refuse_descriptors
from pilotlight_runtime.sandbox.exec_chain import find_program, staged
from pilotlight_runtime.sandbox.freezer import CannotFreeze
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_port import CpuTimes, ExitReason, Guarantees, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec, environment
from pilotlight_runtime.sandbox.watched_process import ChildSandbox, cpu_times_of, descendants, spawn


class ProcessLauncher:
    """Starts plain processes; ignores `uid`, `device_nodes`, and every limit that is not an rlimit."""

    name: Literal["process"] = "process"

    def __init__(self) -> None:
        for program in ("prlimit", "setpriv"):
            find_program(program, package="util-linux")

    def guarantees(self) -> Guarantees:
        return Guarantees(
            own_host_uid=False,
            no_network=False,
            own_filesystem=False,
            own_processes=False,
            filtered_syscalls=False,
            no_new_privileges=False,
            devices_only_given=False,
            memory="none",
            pids="none",
            cpu="none",
            kills_everything=False,
            dies_with_agent=True,
            notes=(
                "--sandbox process: the code runs as the agent's user and sees what the agent sees",
                "kill reaches the process group only; what has left it lives on",
                "only its first process dies with the agent",
            ),
        )

    async def start(self, spec: SandboxSpec) -> ProcessSandbox:
        """Its folders are those of `spec` themselves; a mount elsewhere than at its source is refused."""
        for mount in spec.read_only:
            if mount.source != mount.target:
                raise SandboxNotStarted(f"--sandbox process cannot show {mount.source} as {mount.target}")
        with ExitStack() as undo:
            try:
                ours, theirs = socket.socketpair()
            except OSError as error:
                raise SandboxNotStarted(f"sandbox {spec.name} could not be started: {error}") from error
            undo.callback(ours.close)
            refuse_descriptors(ours)
            with theirs:
                command = staged([str(spec.python), *spec.argv], limits=spec.limits, end_with_parent=True)
                env = environment(spec.env, socket=theirs.fileno(), app=spec.code_dir, models=spec.models_dir)
                spawned = spawn(command, inherit=(theirs.fileno(),), cwd=spec.code_dir, env=env)
            undo.pop_all()
        return ProcessSandbox(spec.name, spawned, ours)

    def close(self) -> None:
        """It holds nothing."""


class ProcessSandbox(ChildSandbox):
    """`pid` is the tenant's first process and leads its group."""

    def pids(self) -> tuple[int, ...]:
        return () if self._exit else descendants(self.pid)

    def memory_peak_bytes(self) -> int:
        return 0

    def memory_bytes(self) -> int:
        return 0

    def cpu_times(self) -> CpuTimes:
        return cpu_times_of(self.pids())

    async def freeze(self) -> None:
        raise CannotFreeze("what has left its process group is not known")

    def thaw(self) -> None:
        """It is never frozen."""

    def limit(self, limits: ResourceLimits) -> None:
        """Without effect."""

    def _kill_all(self) -> None:
        if self._exit is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _judge(self, returncode: int, *, killed: bool) -> SandboxExit:
        number = -returncode if returncode < 0 else None
        reason: ExitReason = "killed" if killed else "exited" if number is None else "signal"
        return SandboxExit(code=returncode if number is None else None, signal=number, reason=reason)

    def _release(self) -> bool:
        return True
