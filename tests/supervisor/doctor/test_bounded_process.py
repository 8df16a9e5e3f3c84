"""Programs that end, that hang, and that cannot be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

import pytest

from pilotlight_supervisor.doctor import bounded_process
from pilotlight_supervisor.doctor.bounded_process import run_bounded


def test_what_a_program_says_comes_back() -> None:
    """On both streams, with its exit status; it is asked nothing."""
    script = "import sys; print(repr(sys.stdin.read())); sys.stderr.write('why'); sys.exit(3)"

    assert run_bounded([sys.executable, "-c", script], 60.0) == (3, "''\n", "why")


def test_one_that_is_not_there_is_an_os_error() -> None:
    """As everywhere."""
    with pytest.raises(FileNotFoundError):
        run_bounded(["/no/such/program"], 1.0)


def test_one_that_hangs_is_killed() -> None:
    """With its group; nothing waits for it on."""
    killed = []

    def kill(group: int, number: int) -> None:
        killed.append((group, number))
        os.killpg(group, number)

    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        run_bounded(["sleep", "600"], 0.01, kill)
    ((group, number),) = killed
    assert number == signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(group, 0)


def test_one_that_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in an uninterruptible sleep: it is there still when the answer is."""
    monkeypatch.setattr(bounded_process, "END_S", 0.01)
    left = []
    with pytest.raises(TimeoutError):
        run_bounded(["sleep", "600"], 0.01, lambda group, _: left.append(group))
    try:
        os.kill(left[0], 0)
    finally:
        os.killpg(left[0], signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(left[0], 0)
