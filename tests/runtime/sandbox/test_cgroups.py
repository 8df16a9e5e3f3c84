"""Where an agent finds its control groups, for both versions, and what it does with those of the dead."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.cgroup import (
    CgroupController,
    remove_folder,
)
from pilotlight_runtime.sandbox.cgroups import LEAF, AgentCgroupFolder, Cgroups, _delegated, own_folders
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from tests.runtime.sandbox.conftest import LIMITS, limits, sleeper

V1 = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
"""
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"


def test_version_1_has_a_folder_for_each_controller() -> None:
    """By the mount table and the agent's own membership."""
    membership = "9:name=systemd:/\n8:pids:/\n4:memory:/agents/a:b\n2:cpu,cpuacct:/agents\n0::/\n"

    found = own_folders(V1 + UNIFIED, membership)

    assert {name: (own.version, str(own.folder), str(own.top)) for name, own in found.items()} == {
        "memory": (1, "/sys/fs/cgroup/memory/agents/a:b", "/sys/fs/cgroup/memory"),
        "pids": (1, "/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids"),
        "cpu": (1, "/sys/fs/cgroup/cpu,cpuacct/agents", "/sys/fs/cgroup/cpu,cpuacct"),
    }


def test_version_2_has_one_for_all() -> None:
    """Every controller is in the agent's one group."""
    mounts = "30 1 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"

    found = own_folders(mounts, "0::/system.slice/pilotlight.service\n")

    top = Path("/sys/fs/cgroup")
    place = AgentCgroupFolder(version=2, folder=top / "system.slice" / "pilotlight.service", top=top)
    assert found == {"memory": place, "pids": place, "cpu": place}


def test_an_agent_in_its_leaf_finds_the_folder_above() -> None:
    """After it has moved itself out of the way, a second launcher of the same agent must not go one deeper."""
    mounts = "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"

    assert str(own_folders(mounts, f"0::/a/{LEAF}\n")["memory"].folder) == "/sys/fs/cgroup/a"


def test_a_container_that_sees_only_its_own_part() -> None:
    """Docker on version 1 without a cgroup namespace: the path is the host's, the mount begins further down."""
    mounts = "35 31 0:32 /docker/f00 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"

    assert str(own_folders(mounts, "4:memory:/docker/f00/sub\n")["memory"].folder) == "/sys/fs/cgroup/memory/sub"
    assert str(own_folders(mounts, "4:memory:/\n")["memory"].folder) == "/sys/fs/cgroup/memory"


def _group(folder: Path, *, has: str, hands_down: str | None, pids: str = "") -> Path:
    """A made-up version 2 group; with None for `hands_down`, asking for a controller fails, as it does when busy."""
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.controllers").write_text(f"{has}\n")
    (folder / "cgroup.procs").write_text(pids)
    if hands_down is None:
        (folder / "cgroup.subtree_control").mkdir()
    else:
        (folder / "cgroup.subtree_control").write_text(f"{hands_down}\n")
    return folder


def test_what_is_handed_down_already_is_used_and_what_is_not_asked_for(tmp_path: Path) -> None:
    """A file is written only for what is missing."""
    own = AgentCgroupFolder(version=2, folder=_group(tmp_path, has="memory pids io", hands_down="pids"), top=tmp_path)

    assert _delegated(["pids"], own) == {"pids": own}
    assert (tmp_path / "cgroup.subtree_control").read_text() == "pids\n"
    assert _delegated(["memory", "pids", "cpu"], own) == {"memory": own, "pids": own}
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"


@pytest.mark.parametrize(
    ("in_container", "others", "moved"), [(False, "", True), (False, "1\n", False), (True, "1\n", True)]
)
def test_processes_are_moved_only_if_they_are_ours_to_move(
    tmp_path: Path, in_container: bool, others: str, moved: bool
) -> None:
    """The agent alone, or in a container everyone; never a neighbour's processes on the host."""
    group = _group(tmp_path / "own", has="memory", hands_down=None, pids=f"{os.getpid()}\n{others}")

    assert (
        _delegated(["memory"], AgentCgroupFolder(version=2, folder=group, top=group if in_container else tmp_path))
        == {}
    )
    assert (group / LEAF).is_dir() == moved


def test_an_agent_that_shares_its_group_uses_the_nearest_above_that_is_open(tmp_path: Path) -> None:
    """As in a login session: the session is full of others, the slice above it hands memory and pids down."""
    _group(tmp_path, has="cpu memory pids", hands_down="cpu memory pids")
    slice_ = _group(tmp_path / "user.slice", has="cpu memory pids", hands_down="memory pids")
    scope = _group(slice_ / "session.scope", has="memory pids", hands_down=None, pids=f"1\n{os.getpid()}\n")
    own = AgentCgroupFolder(version=2, folder=scope, top=tmp_path)
    above = AgentCgroupFolder(version=2, folder=slice_, top=tmp_path)

    assert _delegated(["memory", "pids", "cpu"], own) == {"memory": above, "pids": above}
    assert _delegated(["memory", "pids", "cpu"], AgentCgroupFolder(version=2, folder=scope, top=scope)) == {}


@pytest.fixture
def private() -> Iterator[dict[CgroupController, AgentCgroupFolder]]:
    """Groups of this test's own to work below, since other agents sweep the usual place as well."""
    usual = Cgroups.detect()
    own = {
        name: dataclasses.replace(own, folder=own.folder / f"test-{os.getpid()}") for name, own in usual._own.items()
    }
    for place in own.values():
        place.folder.mkdir(exist_ok=True)
    yield own
    for place in own.values():
        remove_folder(place.folder)


def test_a_living_agent_is_left_alone_and_a_dead_one_swept_away(
    private: dict[CgroupController, AgentCgroupFolder],
) -> None:
    """With a process in the dead one's group; its pid has come round again, but started at another time."""
    mine = Cgroups(private, Cgroups.detect()._agent)
    dead = Cgroups(private, f"{os.getpid()}-1")
    group, left = mine.create("alive", LIMITS), dead.create("left", LIMITS)
    assert group
    assert left
    with sleeper() as process:
        for folder in left.folders:
            (folder / "cgroup.procs").write_text(str(process.pid))
        assert left.pids() == (process.pid,)

        assert mine.sweep() == 1

        assert process.wait(20) == -9
    assert not any(folder.exists() for folder in left.folders)
    assert all(folder.is_dir() for folder in group.folders)
    assert mine.sweep() == 0
    assert group.remove()
    assert group.remove()
    mine.close()


def test_a_refused_limit_leaves_no_folder() -> None:
    """The next start finds the name free."""
    cgroups = Cgroups.detect()

    with pytest.raises(SandboxNotStarted, match="no cgroup for sandbox x"):
        cgroups.create("x", limits(cpu_millis=1 << 60))

    assert not any((top / cgroups._agent / "x").exists() for top in cgroups._tops)
    cgroups.close()


def test_without_controllers_there_is_no_group() -> None:
    """That is no error: rlimits take over."""
    assert Cgroups({}, "1-1").create("x", LIMITS) is None
    assert Cgroups({}, "1-1").controllers == frozenset()
    assert Cgroups({}, "1-1").sweep() == 0
