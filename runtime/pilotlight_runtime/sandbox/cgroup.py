"""One sandbox's control group: its limits, usage and members, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pilotlight_runtime.sandbox.kernel_files import read_kernel_file
from pilotlight_runtime.sandbox.sandbox_port import CpuTimes
from pilotlight_runtime.sandbox.sandbox_spec import OWN_PIDS, ResourceLimits

CgroupController = Literal["memory", "pids", "cpu"]
CgroupVersion = Literal[1, 2]

CPU_PERIOD_US = 100_000
"""Long enough to be cheap, short enough that nothing is throttled for more than 0.1 s."""
SHARES_OF_A_CORE, LEAST_SHARES = 1024, 2
"""Of version 1: what the kernel gives a group by itself, and its least."""
WEIGHT_OF_A_CORE, MOST_WEIGHT = 100, 10_000
"""Of version 2."""


@dataclass(frozen=True, kw_only=True)
class CgroupFolder:
    """The folder of one controller. Version 1 has a folder for each, version 2 one for all."""

    version: CgroupVersion
    folder: Path


@dataclass(frozen=True, kw_only=True)
class CgroupEvents:
    oom_kills: int = 0
    pids_refused: int = 0


def settings(controller: CgroupController, version: CgroupVersion, limits: ResourceLimits) -> dict[str, str]:
    """File -> value, in the order in which the kernel accepts them. Swap counts as memory."""
    quota = limits.cpu_millis * CPU_PERIOD_US // 1000
    match controller, version:
        case "pids", _:
            return {"pids.max": str(limits.pids + OWN_PIDS)}
        case "memory", 1:
            memory = str(limits.memory_bytes)
            return {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}
        case "memory", _:
            # Code does not expect the loss of one process to memory: the whole container ends.
            return {"memory.max": str(limits.memory_bytes), "memory.swap.max": "0", "memory.oom.group": "1"}
        case _, 1:
            shares = max(LEAST_SHARES, limits.promised_cpu_millis * SHARES_OF_A_CORE // 1000)
            return {
                "cpu.cfs_period_us": str(CPU_PERIOD_US), "cpu.cfs_quota_us": str(quota), "cpu.shares": str(shares),
            }  # fmt: skip
        case _:
            weight = min(MOST_WEIGHT, max(1, limits.promised_cpu_millis * WEIGHT_OF_A_CORE // 1000))
            return {"cpu.max": f"{quota} {CPU_PERIOD_US}", "cpu.weight": str(weight)}


OPTIONAL = frozenset({"memory.memsw.limit_in_bytes", "memory.swap.max", "memory.oom.group"})
"""Missing in kernels that are older or without swap accounting; the limit itself holds."""


class Cgroup:
    def __init__(self, places: Mapping[CgroupController, CgroupFolder], freezer: CgroupFolder | None = None) -> None:
        """`freezer` is the folder of version 1's controller of that name; version 2 freezes any group."""
        self._places = places
        self._own_freezer = freezer

    def limit(self, limits: ResourceLimits) -> None:
        """Set every limit; raises `OSError` when one that is not optional is refused."""
        for controller, place in self._places.items():
            values = list(settings(controller, place.version, limits).items())
            try:
                _write(place.folder, values)
            except OSError:  # version 1 wants memory with swap changed last when it falls, but first when it rises
                _write(place.folder, values[::-1])

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(place.folder for place in self._all_places))

    @property
    def freezer(self) -> CgroupFolder | None:
        """By which its processes can be frozen; None: they cannot."""
        if self._own_freezer is not None:
            return self._own_freezer
        return next((place for place in self._places.values() if place.version == 2), None)

    @property
    def _all_places(self) -> tuple[CgroupFolder, ...]:
        beside = () if self._own_freezer is None else (self._own_freezer,)
        return (*self._places.values(), *beside)

    @property
    def entrances(self) -> tuple[Path, ...]:
        """The files into which a process with one thread writes "0" to enter."""
        # By way of cgroup.procs, version 1 holds up every fork on the machine and waits 10-15 ms for it (an RCU grace
        # period); a single thread that moves itself through `tasks` needs none of that.
        return tuple(
            dict.fromkeys(
                place.folder / ("tasks" if place.version == 1 else "cgroup.procs") for place in self._all_places
            )
        )

    def pids(self) -> tuple[int, ...]:
        return tuple(sorted({pid for folder in self.folders for pid in members(folder)}))

    def kill(self) -> None:
        for folder in self.folders:
            kill_members(folder)
        if self._own_freezer is not None:
            release_killed(self._own_freezer.folder)

    def events(self) -> CgroupEvents:
        oom_file = "memory.oom_control" if self._is_v1("memory") else "memory.events"
        return CgroupEvents(
            oom_kills=self._field("memory", oom_file, "oom_kill"),
            pids_refused=self._field("pids", "pids.events", "max"),
        )

    def memory_peak_bytes(self) -> int:
        """0 where the kernel does not count it (version 2 before Linux 5.19)."""
        return int(self._read("memory", "memory.max_usage_in_bytes" if self._is_v1("memory") else "memory.peak") or 0)

    def memory_bytes(self) -> int:
        """What it uses now; 0 where the kernel does not count it."""
        return int(self._read("memory", "memory.usage_in_bytes" if self._is_v1("memory") else "memory.current") or 0)

    def cpu_times(self) -> CpuTimes:
        """Zeros where the kernel does not count them."""
        if self._is_v1("cpu"):
            used_ns = int(self._read("cpu", "cpuacct.usage") or 0)  # both controllers have one folder on most systems
            return CpuTimes(used_ns // 1_000_000, self._field("cpu", "cpu.stat", "throttled_time") // 1_000_000)
        used_us = self._field("cpu", "cpu.stat", "usage_usec")
        return CpuTimes(used_us // 1000, self._field("cpu", "cpu.stat", "throttled_usec") // 1000)

    def remove(self) -> bool:
        """Remove the folders; False while a process in them is still ending."""
        return all(remove_folder(folder) for folder in self.folders)

    def _is_v1(self, controller: CgroupController) -> bool:
        return controller in self._places and self._places[controller].version == 1

    def _read(self, controller: CgroupController, name: str) -> str:
        try:
            return read_kernel_file(f"{self._places[controller].folder}/{name}")
        except (KeyError, OSError):
            return ""

    def _field(self, controller: CgroupController, name: str, field: str) -> int:
        for line in self._read(controller, name).splitlines():
            key, _, value = line.partition(" ")
            if key == field:
                return int(value)
        return 0


def _write(folder: Path, values: list[tuple[str, str]]) -> None:
    for name, value in values:
        if name not in OPTIONAL or (folder / name).exists():
            (folder / name).write_text(value)


def members(folder: Path) -> list[int]:
    """The pids in a group, except those of a foreign pid namespace."""
    try:
        # The kernel writes 0 for those, which `kill` takes for the agent itself.
        return [int(pid) for pid in read_kernel_file(f"{folder}/cgroup.procs").split() if pid != "0"]
    except OSError:
        return []


def kill_members(folder: Path) -> None:
    """Send SIGKILL to every process in a group.

    A killed process can no longer fork, so a round that finds no new one has found all.
    """
    killed: set[int] = set()
    while new := set(members(folder)) - killed:
        for pid in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= new


def release_killed(folder: Path) -> None:
    """Let what was killed in a group of version 1's freezer end: what is frozen does not."""
    with contextlib.suppress(OSError):
        if (state := folder / "freezer.state").exists():
            state.write_text("THAWED")


def remove_folder(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
