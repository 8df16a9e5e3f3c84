"""One sandbox's control group: its limits, what it has used, who is in it, and its end.

Version 1 has one folder for each controller, version 2 one for all; both are a mapping from controller to folder here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pilotlight_runtime.sandbox.profile import Limits

Controller = Literal["memory", "pids", "cpu"]
Version = Literal[1, 2]

#: The scheduler's period: long enough to be cheap, short enough that a throttled container's calls wait < 0.1 s at once.
CPU_PERIOD_US = 100_000
#: bubblewrap's own two processes, which the tenant's limit must not pay for.
OWN_PIDS = 2
#: Each round kills what the round before had just forked; the process limit bounds how long that can go on.
KILL_ROUNDS = 100


@dataclass(frozen=True, kw_only=True)
class Events:
    """What the kernel had to refuse so far."""

    oom_kills: int = 0
    pids_refused: int = 0


def settings(version: Version, limits: Limits) -> dict[Controller, dict[str, str]]:
    """Which file gets which value, in the order in which the kernel accepts them. Swap counts as memory."""
    memory, pids = str(limits.memory_bytes), {"pids.max": str(limits.pids + OWN_PIDS)}
    quota = str(limits.cpu_millis * CPU_PERIOD_US // 1000)
    if version == 1:
        return {
            "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
            "pids": pids,
            "cpu": {"cpu.cfs_period_us": str(CPU_PERIOD_US), "cpu.cfs_quota_us": quota},
        }
    # One process lost to memory leaves a container in a state that nobody wrote code for: all of it goes.
    return {
        "memory": {"memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1"},
        "pids": pids,
        "cpu": {"cpu.max": f"{quota} {CPU_PERIOD_US}"},
    }


#: Absent where the kernel was built without swap accounting, or is older; the limit itself holds without them.
OPTIONAL = frozenset({"memory.memsw.limit_in_bytes", "memory.swap.max", "memory.oom.group"})


class Cgroup:
    """The folders exist and belong to this sandbox alone."""

    def __init__(self, folders: Mapping[Controller, Path], version: Version) -> None:
        self._folders = folders
        self._version = version

    def limit(self, limits: Limits) -> None:
        """Set every limit; raises `OSError` when one that is not optional is refused."""
        for controller, values in settings(self._version, limits).items():
            if (folder := self._folders.get(controller)) is None:
                continue
            for name, value in values.items():
                if name not in OPTIONAL or (folder / name).exists():
                    (folder / name).write_text(value)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Each folder once."""
        return tuple(dict.fromkeys(self._folders.values()))

    def pids(self) -> tuple[int, ...]:
        found: dict[int, None] = {}
        for folder in self.folders:
            found.update(dict.fromkeys(_pids(folder)))
        return tuple(found)

    def kill(self) -> None:
        """Send SIGKILL to everyone in it until nobody is left, or only what the kernel itself is holding."""
        for _ in range(KILL_ROUNDS):
            pids = self.pids()
            if not pids:
                return
            for pid in pids:
                _kill(pid)

    def events(self) -> Events:
        if self._version == 1:
            oom = self._field("memory", "memory.oom_control", "oom_kill")
        else:
            oom = self._field("memory", "memory.events", "oom_kill")
        return Events(oom_kills=oom, pids_refused=self._field("pids", "pids.events", "max"))

    def memory_peak_bytes(self) -> int:
        """0 where the kernel does not say (version 2 before 5.19)."""
        return int(self._read("memory", "memory.max_usage_in_bytes" if self._version == 1 else "memory.peak") or 0)

    def remove(self) -> bool:
        """Whether all folders are gone; False while a process in them is still ending."""
        gone = True
        for folder in self.folders:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        return gone

    def _read(self, controller: Controller, name: str) -> str:
        try:
            return (self._folders[controller] / name).read_text()
        except (KeyError, OSError):
            return ""

    def _field(self, controller: Controller, name: str, field: str) -> int:
        for line in self._read(controller, name).splitlines():
            key, _, value = line.partition(" ")
            if key == field:
                return int(value)
        return 0


def _pids(folder: Path) -> list[int]:
    try:
        # 0 stands for a process of a pid namespace that we cannot see, and to `kill` would mean ourselves.
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split() if pid != "0"]
    except OSError:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
