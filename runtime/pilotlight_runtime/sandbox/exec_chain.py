"""The steps between the agent and the sandbox: into the cgroup, under the limits, down to the host uid, exec.

They are programs of util-linux that replace one another, about 1 ms each: Python code between fork and exec can hang
for ever in a process with threads.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable
from pilotlight_runtime.sandbox.sandbox_spec import OWN_PIDS, ResourceLimits

ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin", "LANG": "C.UTF-8"}
"""Of a stage's first programs: nothing from a tenant, since they may still be root."""
PROGRAMS = ("sh", "prlimit", "nsenter", "setpriv", "unshare", "mount")
NO_CGROUP = 97
"""The shell's exit code when the process could not enter its cgroup."""
FIRST_TO_GO = 1000
"""The most of oom_score_adj: where a host runs out of memory, the kernel ends containers before agent, bus and gateway.
A sandbox of bubblewrap cannot lower it, since its /proc is read-only."""

_ENTER = (
    f"echo {FIRST_TO_GO} > /proc/self/oom_score_adj || exit 97; "
    'while [ "$1" != -- ]; do echo 0 > "$1" || exit 97; shift; done; shift; exec "$@"'
)


def find_program(name: str, *, package: str) -> str:
    """The full path of `name`; raises `SandboxUnavailable` naming the command that installs it."""
    found = shutil.which(name, path=ENV["PATH"])
    if found is None:
        raise SandboxUnavailable(f"{name} is not installed on this node: apt-get install -y {package}")
    return found


@dataclass(frozen=True, kw_only=True)
class PrivilegeDrop:
    """From the agent's privileges to the container's: through `entrance` if set, and to `uid`, without any group."""

    uid: int
    entrance: Path | None


def staged(
    command: Sequence[str],
    *,
    limits: ResourceLimits,
    entrances: Sequence[Path] = (),
    descent: PrivilegeDrop | None = None,
    address_space: bool = False,
    processes: bool = False,
    end_with_parent: bool = False,
) -> list[str]:
    """`command`, preceded by the steps of its process.

    `entrances` are those of its cgroup. `address_space` and `processes` are rlimits for what no cgroup limits here.
    `end_with_parent` is for a command that does not itself ask the kernel to die with the agent.
    """
    return [
        *("sh", "-c", _ENTER, "sh", *map(str, entrances), "--"),
        *("prlimit", *_rlimits(limits, address_space=address_space, processes=processes), "--"),
        *(_descend(descent) if descent else ()),
        *(("setpriv", "--pdeathsig", "KILL", "--") if end_with_parent else ()),
        *command,
    ]


def _rlimits(limits: ResourceLimits, *, address_space: bool, processes: bool) -> list[str]:
    values = {"core": 0, "nofile": limits.open_files, "fsize": limits.file_bytes}
    if address_space:
        values["as"] = limits.memory_bytes
    if processes:
        values["nproc"] = limits.pids + OWN_PIDS
    return [f"--{name}={value}:{value}" for name, value in values.items()]


def _descend(descent: PrivilegeDrop) -> tuple[str, ...]:
    uid = str(descent.uid)
    mount = (f"--mount={descent.entrance}",) if descent.entrance else ()
    return ("nsenter", *mount, "--setgid", uid, "--setuid", uid, "--")
