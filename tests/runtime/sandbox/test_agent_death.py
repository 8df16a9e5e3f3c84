"""What is left when an agent is killed with SIGKILL, which runs none of its code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.cgroups import Cgroups
from pilotlight_runtime.sandbox.mounts import MOUNT_ROOT
from tests.runtime.sandbox.conftest import all_end

AGENT = Path(__file__).with_name("agent_to_kill.py")


@contextmanager
def _agent(kind: str, code_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """An agent with one sandbox; dead when the block is left, whatever happened in it."""
    command = [sys.executable, str(AGENT), kind, str(code_dir)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as agent:
        try:
            yield agent
        finally:
            agent.kill()


def _killed(kind: str, code_dir: Path, promised: slice) -> tuple[int, list[int], bool]:
    """An agent's pid, those of its sandbox, and whether the `promised` ones ended with it."""
    with _agent(kind, code_dir) as agent:
        assert agent.stdout
        pids = [int(pid) for pid in agent.stdout.readline().split()]
        assert pids
        ended = all_end(pids[promised])
        agent.kill()
        return agent.pid, pids, ended()


def _folders(cgroups: Cgroups, pid: int) -> set[Path]:
    """What there is of agent `pid` in the control groups."""
    found: set[Path] = set()
    for top in cgroups._tops:
        with suppress(OSError):  # other agents come and go in the same place
            found |= {folder for folder in top.iterdir() if folder.name.startswith(f"{pid}-")}
    return found


def test_no_process_no_mount_and_after_the_next_start_no_cgroup_is_left(code_dir: Path) -> None:
    """Also not of the processes that had left the session; the code folder lies where only a bind mount reaches."""
    mounts_before = Path("/proc/self/mountinfo").read_text()

    agent, pids, ended = _killed("bubblewrap", code_dir, slice(None))

    assert len(pids) == 5
    assert ended
    assert Path("/proc/self/mountinfo").read_text() == mounts_before
    assert not any(MOUNT_ROOT.iterdir())

    next_agent = Cgroups.detect()

    assert next_agent.controllers
    assert _folders(next_agent, agent) == set()
    next_agent.close()


def test_a_plain_process_dies_with_its_agent_as_far_as_it_is_promised(code_dir: Path) -> None:
    """Its first process does; what double-forked does not, which is why `kills_everything` is not promised."""
    _, pids, ended = _killed("process", code_dir, slice(1))

    assert ended
    assert len(pids) == 3
    for pid in pids[1:]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_killed_in_the_middle_of_a_start_leaves_nothing_after_the_next(code_dir: Path, seed: int) -> None:
    """Where bubblewrap had no time yet to ask the kernel to die with its parent, the sweep ends what is left."""
    watch = Cgroups.detect()
    with _agent("bubblewrap", code_dir) as agent:
        while not (folders := _folders(watch, agent.pid)):
            assert agent.poll() is None
        for _ in range(seed * 400):
            os.getppid()  # a little further into the start, without sleeping

    watch.sweep()

    assert not any(folder.exists() for folder in folders)
    watch.close()
