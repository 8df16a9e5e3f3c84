"""What is left when an agent is killed with SIGKILL, which runs none of its code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.cgroups import Cgroups
from pilotlight_runtime.sandbox.mounts import MOUNT_ROOT

from .conftest import all_end

AGENT = Path(__file__).with_name("agent_to_kill.py")


def _killed_agent(kind: str, code_dir: Path, promised: slice) -> tuple[list[int], bool]:
    """The pids of its sandbox, and whether those that were `promised` ended within two seconds of its death."""
    command = [sys.executable, str(AGENT), kind, str(code_dir)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as agent:
        assert agent.stdout
        pids = [int(pid) for pid in agent.stdout.readline().split()]
        assert pids
        ended = all_end(pids[promised])
        agent.kill()
        return pids, ended()


def test_no_process_no_mount_and_after_the_next_start_no_cgroup_is_left(code_dir: Path) -> None:
    """Also not of the processes that had left the session; the code folder lies where only a bind mount reaches."""
    mounts_before = Path("/proc/self/mountinfo").read_text()

    pids, ended = _killed_agent("bubblewrap", code_dir, slice(None))

    assert len(pids) == 5
    assert ended
    assert Path("/proc/self/mountinfo").read_text() == mounts_before
    assert not any(MOUNT_ROOT.iterdir())

    next_agent = Cgroups.detect()
    tops = {own.folder / "pilotlight" for own in next_agent._own.values()}

    assert tops
    assert not [folder for top in tops if top.exists() for folder in top.rglob("doomed")]
    assert next_agent.sweep() == 0
    next_agent.close()


def test_a_plain_process_dies_with_its_agent_as_far_as_it_is_promised(code_dir: Path) -> None:
    """Its first process does; what double-forked does not, which is why `kills_everything` is not promised."""
    pids, ended = _killed_agent("process", code_dir, slice(1))

    assert ended
    assert len(pids) == 3
    for pid in pids[1:]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_killed_in_the_middle_of_a_start_leaves_nothing_after_the_next(code_dir: Path, seed: int) -> None:
    """Where bubblewrap had no time yet to ask the kernel to die with its parent, the sweep ends what is left."""
    command = [sys.executable, str(AGENT), "bubblewrap", str(code_dir)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    watch = Cgroups.detect()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as agent:
        folder = _first_folder(watch, agent.pid)
        for _ in range(seed * 400):
            os.getppid()  # a little further into the start, without sleeping
        agent.kill()

    watch.sweep()

    assert not folder.exists()
    watch.close()


def _first_folder(cgroups: Cgroups, pid: int) -> Path:
    """The folder of the agent `pid` for its sandbox, as soon as a process is in it."""
    tops = [own.folder / "pilotlight" for own in cgroups._own.values()]
    while True:
        for top in tops:
            for procs in top.glob(f"{pid}-*/doomed/cgroup.procs"):
                try:
                    if procs.read_text():
                        return procs.parent
                except OSError:
                    pass
