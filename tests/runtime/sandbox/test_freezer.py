"""Processes that are stopped, all of them or none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.cgroup import Cgroup, CgroupFolder, release_killed
from pilotlight_runtime.sandbox.cgroups import freezer_folder
from pilotlight_runtime.sandbox.freezer import (
    CannotFreeze,
    freeze_group,
    is_frozen,
    is_stopped,
    resume_processes,
    stop_processes,
    thaw_group,
)
from pilotlight_runtime.sandbox.watched_process import descendants
from tests.runtime.sandbox.conftest import sleeper
from tests.waiting import until

FORKS = """
import os, sys, time
print("up", flush=True)
while True:
    if not os.fork():
        time.sleep(0.01)
        os._exit(0)
    os.waitpid(-1, os.WNOHANG)
"""
"""Starts processes as fast as it can."""


@contextmanager
def forking() -> Iterator[int]:
    """Its pid."""
    with subprocess.Popen([sys.executable, "-c", FORKS], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            yield process.pid
        finally:
            for pid in descendants(process.pid):
                with suppress(ProcessLookupError):  # it ended by itself
                    os.kill(pid, 9)


async def test_whoever_starts_processes_meanwhile_is_stopped_with_all_of_them(anyio_backend: str) -> None:
    """By signals, each in its turn: none that was started in between runs on, and all go on after."""
    with forking() as pid:
        await stop_processes(lambda: descendants(pid))

        stopped = descendants(pid)
        assert all(map(is_stopped, stopped))
        assert descendants(pid) == stopped
        resume_processes(stopped)
        await until(lambda: descendants(pid) != stopped)


async def test_a_list_without_end_is_given_up_and_all_of_it_goes_on(anyio_backend: str) -> None:
    """What cannot be proven within its time is not parked."""
    with sleeper() as process:
        numbers = iter(range(10**9, 10**9 + 10**6))
        with pytest.raises(CannotFreeze, match="not all of its processes"):
            await stop_processes(lambda: (process.pid, next(numbers)), within_s=0.05)
        await until(lambda: _sleeps(process.pid))


def _sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_a_process_that_is_gone_does_not_run() -> None:
    """And one that runs is not stopped."""
    assert is_stopped(2**22 + 1)
    assert not is_stopped(os.getpid())


@pytest.mark.parametrize("version", [1, 2])
async def test_a_group_is_frozen_when_the_kernel_says_so(version: int, tmp_path: Path, anyio_backend: str) -> None:
    """Each version by its own file."""
    place = CgroupFolder(version=version, folder=tmp_path)  # type: ignore[arg-type]
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 1\n")

    await freeze_group(place)

    name, frozen, thawed = ("freezer.state", "FROZEN", "THAWED") if version == 1 else ("cgroup.freeze", "1", "0")
    assert (tmp_path / name).read_text() == frozen
    thaw_group(place)
    assert (tmp_path / name).read_text() == thawed


async def test_a_group_that_does_not_freeze_is_thawed(tmp_path: Path, anyio_backend: str) -> None:
    """A process in a driver cannot be stopped: it serves on. So it is where the kernel has no such file."""
    place = CgroupFolder(version=2, folder=tmp_path)
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    with pytest.raises(CannotFreeze, match="not all of its processes"):
        await freeze_group(place, within_s=0.02)
    assert (tmp_path / "cgroup.freeze").read_text() == "0"
    assert not is_frozen(place)
    with pytest.raises(CannotFreeze, match="does not freeze"):
        await freeze_group(CgroupFolder(version=1, folder=tmp_path / "gone"))
    thaw_group(CgroupFolder(version=1, folder=tmp_path / "gone"))


def test_which_group_freezes_a_sandbox(tmp_path: Path) -> None:
    """Version 1 has a controller for it, version 2 freezes any group; without either nothing does."""
    freezer = CgroupFolder(version=1, folder=tmp_path / "freezer")
    memory = CgroupFolder(version=1, folder=tmp_path / "memory")
    unified = CgroupFolder(version=2, folder=tmp_path / "unified")

    group = Cgroup({"memory": memory}, freezer)
    assert group.freezer is freezer
    assert tmp_path / "freezer" in group.folders
    assert tmp_path / "freezer" / "tasks" in group.entrances
    assert Cgroup({"memory": unified}).freezer is unified
    assert Cgroup({"memory": memory}).freezer is None


def test_what_was_killed_while_it_was_frozen_is_let_end(tmp_path: Path) -> None:
    """Version 1 keeps it until it is thawed: also of an agent that has died."""
    (tmp_path / "freezer.state").write_text("FROZEN")
    Cgroup({}, CgroupFolder(version=1, folder=tmp_path)).kill()
    assert (tmp_path / "freezer.state").read_text() == "THAWED"
    release_killed(tmp_path / "gone")


def test_where_the_freezer_is() -> None:
    """By the mount table and the agent's own membership; none, where it is not mounted."""
    mounts = "35 31 0:32 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"

    found = freezer_folder(mounts, "6:freezer:/agents\n4:memory:/a\n0::/\n")

    assert found is not None
    assert (found.version, found.folder) == (1, Path("/sys/fs/cgroup/freezer/agents"))
    assert freezer_folder("30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/a\n") is None
