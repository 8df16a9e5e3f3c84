"""The programs between the agent and the sandbox."""

from __future__ import annotations

from pathlib import Path

from pilotlight_runtime.sandbox.exec_chain import FIRST_TO_GO, PrivilegeDrop, staged
from tests.runtime.sandbox.conftest import limits

LIMITS = limits(memory_bytes=1000, pids=8, open_files=64, file_bytes=4096)


def test_into_the_groups_first_then_the_limits_then_down_to_the_uid() -> None:
    """The order is the privilege: only root may write the groups, and only the last step is the container's."""
    command = staged(
        ["bwrap", "--args", "9"],
        limits=LIMITS,
        entrances=[Path("/cg/memory/x/tasks"), Path("/cg/pids/x/tasks")],
        descent=PrivilegeDrop(uid=300_000, entrance=Path("/proc/1/fd/5")),
    )

    assert command[:2] == ["sh", "-c"]
    assert command[3:] == [
        *("sh", "/cg/memory/x/tasks", "/cg/pids/x/tasks", "--"),
        *("prlimit", "--core=0:0", "--nofile=64:64", "--fsize=4096:4096", "--"),
        *("nsenter", "--mount=/proc/1/fd/5", "--setgid", "300000", "--setuid", "300000", "--"),
        *("bwrap", "--args", "9"),
    ]


def test_nothing_is_done_that_was_not_asked_for() -> None:
    """Without a cgroup, a uid or a namespace it only becomes the first to go, under its limits."""
    command = staged(["true"], limits=LIMITS)

    assert command[0] == "sh"
    assert f"echo {FIRST_TO_GO} > /proc/self/oom_score_adj" in command[2]
    assert command[3:6] == ["sh", "--", "prlimit"]
    assert command[-2:] == ["--", "true"]
    assert "--mount" not in " ".join(staged(["true"], limits=LIMITS, descent=PrivilegeDrop(uid=1, entrance=None)))


def test_rlimits_stand_in_for_what_no_cgroup_limits() -> None:
    """Memory by the address space, processes by the uid's count."""
    command = staged(["true"], limits=LIMITS, address_space=True, processes=True, end_with_parent=True)

    assert "--as=1000:1000" in command
    assert "--nproc=10:10" in command
    assert command[-5:] == ["setpriv", "--pdeathsig", "KILL", "--", "true"]
