"""Stops every process of a sandbox, and lets them go on: a frozen sandbox keeps its memory and takes no processor.

A control group is frozen by the kernel, all of it at once (`FROZEN`). Where the agent has no freezer, each process is
stopped by a signal, and that none runs is proven: all that are known have stopped, and a list made after that has no
other one. A stopped process starts none, so there is none.

What is frozen by version 1 of control groups ends only when it is thawed: so whoever kills, thaws.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pilotlight_runtime.sandbox.cgroup import CgroupFolder

FREEZE_S = 2.0
"""A process in a driver or on a dead file system cannot be stopped: its container is not parked."""
LOOK_S = 0.001
"""The kernel freezes within a millisecond or two, and sends no event."""
STOPPED = frozenset("TtZXx")
"""States of a thread that does not run, as /proc has them: stopped, traced, or ended."""
V1_STATE = "freezer.state"
V2_STATE = "cgroup.freeze"


class CannotFreeze(Exception):
    """The processes of a sandbox could not be stopped: they run."""


async def freeze_group(place: CgroupFolder, within_s: float = FREEZE_S) -> None:
    """Stop every process of a control group. Raises CannotFreeze, and then all of them run."""
    try:
        _write(place, frozen=True)
        until = time.monotonic() + within_s
        while not is_frozen(place):
            if time.monotonic() > until:
                raise CannotFreeze(f"not all of its processes stopped within {within_s:g} s")
            await asyncio.sleep(LOOK_S)
    except OSError as error:
        thaw_group(place)
        raise CannotFreeze(f"the kernel does not freeze its control group: {error}") from error
    except BaseException:
        thaw_group(place)
        raise


def thaw_group(place: CgroupFolder) -> None:
    """Let the processes of a control group go on; nothing happens if it is gone, or was not frozen."""
    with contextlib.suppress(OSError):
        _write(place, frozen=False)


def is_frozen(place: CgroupFolder) -> bool:
    if place.version == 1:
        return (place.folder / V1_STATE).read_text().strip() == "FROZEN"
    return "frozen 1" in (place.folder / "cgroup.events").read_text().splitlines()


def _write(place: CgroupFolder, *, frozen: bool) -> None:
    if place.version == 1:
        (place.folder / V1_STATE).write_text("FROZEN" if frozen else "THAWED")
    else:
        (place.folder / V2_STATE).write_text("1" if frozen else "0")


async def stop_processes(pids: Callable[[], Iterable[int]], within_s: float = FREEZE_S) -> None:
    """Stop every process that `pids` lists. Raises CannotFreeze, and then all of them run."""
    until, known = time.monotonic() + within_s, frozenset[int]()
    were_stopped = False
    try:
        while True:
            found = frozenset(pids())
            if were_stopped and found <= known:
                return
            if time.monotonic() > until:
                raise CannotFreeze(f"not all of its processes stopped within {within_s:g} s")
            _signal(found, signal.SIGSTOP)
            await asyncio.sleep(LOOK_S)
            known, were_stopped = found, all(map(is_stopped, found))
    except OSError as error:
        resume_processes(pids())
        raise CannotFreeze(f"its processes cannot be stopped: {error}") from error
    except BaseException:
        resume_processes(pids())
        raise


def resume_processes(pids: Iterable[int]) -> None:
    _signal(pids, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs, or it is gone."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return True
    return all(_state_of(thread) in STOPPED for thread in threads)


def _state_of(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
