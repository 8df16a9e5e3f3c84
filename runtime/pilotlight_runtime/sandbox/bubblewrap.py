"""The default sandbox: bubblewrap, under a host uid and in a cgroup of the container's own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from pilotlight_runtime.sandbox import seccomp
from pilotlight_runtime.sandbox.cgroup import Cgroup, CgroupEvents
from pilotlight_runtime.sandbox.cgroups import CONTROLLERS, Cgroups
from pilotlight_runtime.sandbox.descriptors import ParentDescriptors, descriptors, memory_file
from pilotlight_runtime.sandbox.exec_chain import PROGRAMS, PrivilegeDrop, find_program, staged
from pilotlight_runtime.sandbox.freezer import (
    CannotFreeze,
    freeze_group,
    resume_processes,
    stop_processes,
    thaw_group,
)
from pilotlight_runtime.sandbox.host_uids import UidPool
from pilotlight_runtime.sandbox.mounts import MOUNT_ROOT, MountNamespace
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_port import NO_CPU_TIMES, CpuTimes, ExitReason, Guarantees, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec, SystemEntry, bubblewrap_options
from pilotlight_runtime.sandbox.watched_process import (
    ChildSandbox,
    Spawned,
    children,
    cpu_times_of,
    descendants,
    kill_process,
    runnable_ms,
    spawn,
)

SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives"),
)
"""The operating system's code, and the few files of /etc that the dynamic linker and libc follow."""


class BubblewrapLauncher:
    """Starts sandboxes with bwrap. A root agent's containers get host uids from `uids`, unless `drop_uid` is False."""

    name: Literal["bubblewrap"] = "bubblewrap"

    def __init__(self, *, uids: UidPool | None = None, drop_uid: bool = True, mount_root: Path = MOUNT_ROOT) -> None:
        """Raises `SandboxUnavailable` naming the command that installs what is missing.

        Without `uids`, claims a range that no other agent on this host has.
        """
        self._bwrap = find_program("bwrap", package="bubblewrap")
        for program in PROGRAMS:
            find_program(program, package="util-linux mount")
        self._filter = seccomp.program()
        self._mounts = MountNamespace(mount_root)
        self._cgroups = Cgroups.detect()
        self._system = tuple(_system_entry(Path(path)) for path in SYSTEM if os.path.lexists(path))
        self._uids = (uids or UidPool.claim()) if drop_uid and os.geteuid() == 0 else None

    def guarantees(self) -> Guarantees:
        controllers = self._cgroups.controllers
        notes = [f"the agent may not use the {name} cgroup" for name in CONTROLLERS if name not in controllers]
        if "memory" not in controllers:
            notes.append("memory is limited for each process alone, and not at all in containers with a GPU")
        if self._uids is None:
            why = "the agent is not root" if os.geteuid() else "the drop was switched off"
            notes.append(f"containers run under the agent's own host uid: {why}")
        return Guarantees(
            own_host_uid=self._uids is not None,
            no_network=True,
            own_filesystem=True,
            own_processes=True,
            filtered_syscalls=True,
            no_new_privileges=True,
            devices_only_given=True,
            memory="cgroup" if "memory" in controllers else "rlimit",
            pids="cgroup" if "pids" in controllers else "rlimit" if self._uids else "none",
            cpu="cgroup" if "cpu" in controllers else "none",
            kills_everything=True,
            dies_with_agent=True,
            notes=tuple(notes),
        )

    async def start(self, spec: SandboxSpec) -> BubblewrapSandbox:
        if spec.uid is not None and not self._uids:
            raise SandboxNotStarted(f"only a root agent can give sandbox {spec.name} the host uid {spec.uid}")
        with ExitStack() as undo:
            lent = self._uids.take() if self._uids and spec.uid is None else None
            undo.callback(self._give_back, lent)
            try:
                group = self._cgroups.create(spec.name, spec.limits)
                if group:
                    undo.callback(group.remove)
                    undo.callback(group.kill)
                sandbox = self._start(spec, group, lent)
            except OSError as error:
                raise SandboxNotStarted(f"sandbox {spec.name} could not be started: {error}") from error
            undo.pop_all()
        return sandbox

    def close(self) -> None:
        self._mounts.close()
        self._cgroups.close()
        if self._uids:
            self._uids.close()

    def _start(self, spec: SandboxSpec, group: Cgroup | None, lent: int | None) -> BubblewrapSandbox:
        uid = (spec.uid or lent) if self._uids else None
        with descriptors(self._filter) as (ours, fds):
            options = bubblewrap_options(
                spec, fds=fds, system=self._system, source_of=self._mounts.reachable if uid else Path.resolve
            )
            # Read from a descriptor, since every user of the host can read a command line.
            with memory_file(b"".join(os.fsencode(option) + b"\0" for option in options)) as arguments:
                command = [self._bwrap, "--args", str(arguments), "--", str(spec.python), *spec.argv]
                spawned = spawn(
                    self._staged(command, spec, group, uid),
                    inherit=(arguments, fds.socket, fds.seccomp, fds.status, *fds.files),
                )
        return BubblewrapSandbox(spec.name, spawned, ours, group=group, on_gone=lambda: self._give_back(lent))

    def _staged(self, command: list[str], spec: SandboxSpec, group: Cgroup | None, uid: int | None) -> list[str]:
        controllers = self._cgroups.controllers
        return staged(
            command,
            limits=spec.limits,
            entrances=group.entrances if group else (),
            descent=PrivilegeDrop(uid=uid, entrance=self._mounts.entrance) if uid else None,
            # A GPU driver reserves address space by the terabyte, so there this limit would only break things.
            address_space="memory" not in controllers and not spec.device_nodes,
            # Counted per host uid: without one of its own it would count the agent's processes too.
            processes="pids" not in controllers and uid is not None,
        )

    def _give_back(self, lent: int | None) -> None:
        if self._uids and lent is not None:
            self._uids.release(lent)


class BubblewrapSandbox(ChildSandbox):
    """`pid` is bwrap itself; its child is the first process of the sandbox's pid namespace."""

    def __init__(
        self, name: str, spawned: Spawned, ours: ParentDescriptors, *, group: Cgroup | None, on_gone: Callable[[], None]
    ) -> None:
        super().__init__(name, spawned, ours.socket)
        self._status_fd = ours.status_fd
        self._group = group
        self._on_gone = on_gone
        self._memory_peak = 0

    def pids(self) -> tuple[int, ...]:
        if self._exit:
            return ()
        if self._group:
            return tuple(sorted({self.pid, *self._group.pids()}))  # itself too, in the moment before it is in the group
        return descendants(self.pid)

    def memory_peak_bytes(self) -> int:
        if self._group:
            self._memory_peak = max(self._memory_peak, self._group.memory_peak_bytes())
        return self._memory_peak

    def memory_bytes(self) -> int:
        return self._group.memory_bytes() if self._group else 0

    def cpu_times(self) -> CpuTimes:
        pids = self.pids()
        counted = self._group.cpu_times() if self._group and pids else NO_CPU_TIMES
        if not counted.used_ms:
            return cpu_times_of(pids)
        return CpuTimes(counted.used_ms, counted.throttled_ms + runnable_ms(pids))

    async def freeze(self) -> None:
        if not self._group:  # by its descendants alone, one that was just started could be missed
            raise CannotFreeze("no control group says which processes it has")
        if (place := self._group.freezer) is not None:
            await freeze_group(place)
        else:
            await stop_processes(self.pids)

    def thaw(self) -> None:
        if self._group and (place := self._group.freezer) is not None:
            thaw_group(place)
        else:
            resume_processes(self.pids())

    def limit(self, limits: ResourceLimits) -> None:
        if self._group:
            self._group.limit(limits)

    def _kill_all(self) -> None:
        if self._exit is None:
            # When the first process of a pid namespace dies, the kernel takes all the others with it.
            for pid in (*children(self.pid), self.pid):
                kill_process(pid)
        if self._group:
            self._group.kill()

    def _judge(self, returncode: int, *, killed: bool) -> SandboxExit:
        self.memory_peak_bytes()
        events = self._group.events() if self._group else CgroupEvents()
        return judge(returncode, events=events, status=_read_status(self._status_fd), killed=killed)

    def _release(self) -> bool:
        if self._group and not self._group.remove():
            self._group.kill()
            return False
        self._on_gone()
        return True


def judge(returncode: int, *, events: CgroupEvents, status: bytes, killed: bool) -> SandboxExit:
    """Why a sandbox ended. bwrap returns its child's end as a shell does: 128 + n stands for signal n.

    `status` is bwrap's own report, without an exit code if the command never ran.
    """
    number = -returncode if returncode < 0 else returncode - 128 if 128 < returncode < 128 + signal.NSIG else None
    oom = events.oom_kills > 0
    reason: ExitReason = "exited" if number is None else "signal"
    if killed:
        reason = "killed"
    elif oom and number == signal.SIGKILL:
        reason = "memory"
    elif returncode > 0 and b'"exit-code"' not in status:
        reason = "setup"
    elif returncode and events.pids_refused:
        reason = "pids"
    return SandboxExit(code=returncode if number is None else None, signal=number, reason=reason, oom=oom)


def _system_entry(path: Path) -> SystemEntry:
    is_link = path.is_symlink() and path.parent == Path("/")  # /etc/localtime is shown as the file it leads to
    return SystemEntry(path=path, link_to=str(path.readlink()) if is_link else None)


def _read_status(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b""
    finally:
        os.close(fd)
