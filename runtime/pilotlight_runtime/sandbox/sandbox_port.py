"""The port between an agent and the walls around tenant code: `Launcher` starts a `Sandbox`."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec

ExitReason = Literal[
    "exited",  # it ended by itself, whatever its code
    "signal",  # a signal ended it that the agent did not send
    "memory",  # the kernel ended it at its memory limit
    "pids",  # it failed after it was refused a process or thread
    "killed",  # `kill()` ended it
    "setup",  # it never came to run: stderr names what was missing
]


@dataclass(frozen=True, kw_only=True)
class SandboxExit:
    """How a sandbox ended. `code` and `signal` exclude each other; code 137 of bubblewrap reads as signal 9."""

    code: int | None
    signal: int | None
    reason: ExitReason
    oom: bool = False
    """The kernel killed at least one of its processes for memory; others may have gone on."""


@dataclass(frozen=True, kw_only=True)
class Guarantees:
    """What this launcher guarantees on this node; `notes` give the reasons for False and "none"."""

    own_host_uid: bool
    """For the host, each container has a uid of its own that is not root's."""
    no_network: bool
    own_filesystem: bool
    """Read-only root, only its own files, capped /tmp."""
    own_processes: bool
    """It sees and signals only its own."""
    filtered_syscalls: bool
    no_new_privileges: bool
    devices_only_given: bool
    memory: Literal["cgroup", "rlimit", "none"]
    pids: Literal["cgroup", "rlimit", "none"]
    cpu: Literal["cgroup", "none"]
    kills_everything: bool
    """`kill()` also reaches processes in sessions of their own."""
    dies_with_agent: bool
    notes: tuple[str, ...] = ()

    @property
    def many_tenants(self) -> bool:
        """Whether containers of different tenants may share this node."""
        walls = self.no_network and self.own_filesystem and self.own_processes and self.filtered_syscalls
        return walls and self.no_new_privileges and self.devices_only_given and self.kills_everything

    @property
    def sandbox_limits(self) -> bool:
        """Whether containers are held to the sizes of their /tmp and /dev/shm, and to their number of processes."""
        return self.own_filesystem and self.pids != "none"


class CpuTimes(NamedTuple):
    """Of all processes of a sandbox since its start, in ms."""

    used_ms: int
    """Of processors."""
    throttled_ms: int
    """How long they were kept from them, since they had used what they may, or since others had them."""


NO_CPU_TIMES = CpuTimes(0, 0)


class Sandbox(Protocol):
    """A running sandbox. Its starter calls `cleanup()` once, however it ended."""

    @property
    def name(self) -> str: ...

    @property
    def pid(self) -> int:
        """Host pid of its outermost process."""
        ...

    @property
    def socket(self) -> socket.socket:
        """The agent's end of a socket pair, blocking; `PL_FD` holds the number of the child's end."""
        ...

    @property
    def stdout_fd(self) -> int:
        """Read end of a pipe, non-blocking; so is `stderr_fd`."""
        ...

    @property
    def stderr_fd(self) -> int: ...

    def pids(self) -> tuple[int, ...]:
        """Host pids of all its processes; none after its end."""
        ...

    def memory_peak_bytes(self) -> int:
        """The most memory it has used so far; 0 where nothing counts it."""
        ...

    def memory_bytes(self) -> int:
        """The memory that it uses now; 0 where nothing counts it."""
        ...

    def cpu_times(self) -> CpuTimes:
        """What it has used of processors; zeros after its end, and where nothing counts it."""
        ...

    async def freeze(self) -> None:
        """Stop every process in it, which keep their memory, until `thaw`. Within seconds.

        Raises `CannotFreeze` where that is not sure; then all of them run. It can be killed while it is frozen.
        """
        ...

    def thaw(self) -> None:
        """Let its processes go on; nothing happens if they are not frozen."""
        ...

    def limit(self, limits: ResourceLimits) -> None:
        """Change its limits of memory, processes and processors, where cgroups enforce them.

        The sizes of its /tmp, /dev/shm and files stay. Raises `OSError` if it uses more than that already.
        """
        ...

    def kill(self) -> None:
        """End every process in it at once; may be repeated, also after its end."""
        ...

    async def wait(self) -> SandboxExit:
        """Wait until its first process has ended; may be repeated, by any number of callers.

        The kernel takes some milliseconds to end the others: what they held (device memory, say) is surely free only
        after `cleanup()`.
        """
        ...

    async def cleanup(self) -> None:
        """Kill it if it still runs, close the descriptors, remove its cgroup, free its uid. Takes seconds at most."""
        ...


class Launcher(Protocol):
    @property
    def name(self) -> Literal["bubblewrap", "process"]: ...

    def guarantees(self) -> Guarantees: ...

    async def start(self, spec: SandboxSpec) -> Sandbox:
        """Start a sandbox; it is ready when its code says so on the socket.

        Call it on the agent's main thread: the kernel ends a sandbox when the *thread* that started it ends. Raises
        `SandboxNotStarted` and `UidsExhausted`.
        """
        ...

    def close(self) -> None:
        """Release the launcher's own resources, after the end of its sandboxes."""
        ...
