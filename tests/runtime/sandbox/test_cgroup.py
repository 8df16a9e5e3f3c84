"""One control group: what is written into it, what it tells, and its end. Its folders are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.cgroup import (
    OPTIONAL,
    Cgroup,
    CgroupEvents,
    CgroupFolder,
    kill_members,
    members,
    remove_folder,
    settings,
)
from pilotlight_runtime.sandbox.sandbox_port import NO_CPU_TIMES, CpuTimes
from tests.runtime.sandbox.conftest import MIB, limits, sleeper


def test_settings_of_both_versions() -> None:
    """Limits in the units of each file; the sandbox's own processes are not the tenant's."""
    small = limits(memory_bytes=64 * MIB, pids=10, cpu_millis=1500, promised_cpu_millis=500)

    assert settings("memory", 1, small) == {
        "memory.limit_in_bytes": str(64 * MIB),
        "memory.memsw.limit_in_bytes": str(64 * MIB),
    }
    assert settings("memory", 2, small) == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
    }
    assert settings("pids", 1, small) == settings("pids", 2, small) == {"pids.max": "12"}
    assert settings("cpu", 1, small) == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "150000",
        "cpu.shares": "512",
    }
    assert settings("cpu", 2, small) == {"cpu.max": "150000 100000", "cpu.weight": "50"}


def test_what_version_2_tells_of_a_group(tmp_path: Path) -> None:
    """Kills, refusals and the peak, each from its own file."""
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 1\n")
    (tmp_path / "pids.events").write_text("max 7\n")
    (tmp_path / "memory.peak").write_text("4096\n")
    place = CgroupFolder(version=2, folder=tmp_path)
    group = Cgroup({"memory": place, "pids": place, "cpu": place})

    assert group.events() == CgroupEvents(oom_kills=2, pids_refused=7)
    assert group.memory_peak_bytes() == 4096
    assert group.folders == (tmp_path,)


def test_either_version_tells_the_time_of_processors(tmp_path: Path) -> None:
    """In microseconds the one, in nanoseconds the other."""
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nthrottled_usec 250000\nthrottled_time 90000000\n")
    (tmp_path / "cpuacct.usage").write_text("700000000\n")

    assert Cgroup({"cpu": CgroupFolder(version=2, folder=tmp_path)}).cpu_times() == CpuTimes(1_500, 250)
    assert Cgroup({"cpu": CgroupFolder(version=1, folder=tmp_path)}).cpu_times() == CpuTimes(700, 90)
    assert Cgroup({}).cpu_times() == NO_CPU_TIMES


def test_a_group_without_controllers_tells_nothing(tmp_path: Path) -> None:
    """Neither events nor usage nor members."""
    assert Cgroup({}).events() == CgroupEvents()
    assert Cgroup({}).memory_peak_bytes() == 0
    assert Cgroup({"memory": CgroupFolder(version=2, folder=tmp_path)}).pids() == ()


def test_a_limit_that_is_refused_is_an_error(tmp_path: Path) -> None:
    """Else a container would run without it."""
    (tmp_path / "pids.max").mkdir()  # cannot be written

    with pytest.raises(IsADirectoryError):
        Cgroup({"pids": CgroupFolder(version=2, folder=tmp_path)}).limit(limits())


def test_a_limit_that_the_kernel_does_not_have_is_left_out_if_it_is_optional(tmp_path: Path) -> None:
    """A kernel without swap accounting has no such file."""
    Cgroup({"memory": CgroupFolder(version=2, folder=tmp_path)}).limit(limits(memory_bytes=64 * MIB))

    assert {path.name for path in tmp_path.iterdir()} == {"memory.max"}
    assert {"memory.swap.max", "memory.oom.group"} <= OPTIONAL
    assert (tmp_path / "memory.max").read_text() == str(64 * MIB)


def test_processes_that_we_cannot_see_are_left_out(tmp_path: Path) -> None:
    """The kernel writes 0 for those, which `kill` would take for ourselves."""
    (tmp_path / "cgroup.procs").write_text("0\n17\n0\n")

    assert members(tmp_path) == [17]
    assert members(tmp_path / "gone") == []


def test_whoever_is_in_a_group_is_killed(tmp_path: Path) -> None:
    """Once each; a process that has ended meanwhile is no error."""
    with sleeper() as process, sleeper() as ended:
        ended.kill()
        ended.wait(20)
        (tmp_path / "cgroup.procs").write_text(f"{ended.pid}\n{process.pid}\n")

        kill_members(tmp_path)

        assert process.wait(20) == -9


def test_a_process_enters_by_the_way_that_costs_nobody_anything(tmp_path: Path) -> None:
    """Version 1 holds up every fork of the machine otherwise."""
    for version, entrance in ((1, "tasks"), (2, "cgroup.procs")):
        place = CgroupFolder(version=version, folder=tmp_path)  # type: ignore[arg-type]
        assert Cgroup({"memory": place, "pids": place}).entrances == (tmp_path / entrance,)


def test_a_group_is_removed_once_it_is_empty(tmp_path: Path) -> None:
    """Until then it is busy; one that is gone already is no error."""
    folder = tmp_path / "group"
    (folder / "child").mkdir(parents=True)
    group = Cgroup({"pids": CgroupFolder(version=2, folder=folder)})

    assert not group.remove()
    (folder / "child").rmdir()
    assert group.remove()
    assert group.remove()
    assert remove_folder(folder)
