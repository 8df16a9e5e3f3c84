"""Runs a program for a bounded time, and leaves it behind where it cannot even be killed.

A process that waits for a device or for a file system that hangs is dead only when that answers. Whoever waits for its
end, as `subprocess.run` does after it has killed it, hangs with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

END_S = 1.0
"""For a process that was killed to be gone."""


class EndedProcess(NamedTuple):
    """A program that came to its end."""

    returncode: int
    told: str
    complaint: str


def run_bounded(command: Sequence[str], within_s: float, kill: Callable[[int, int], None] = os.killpg) -> EndedProcess:
    """Run a program, in a process group of its own that `kill` ends if it takes longer.

    Raises:
        TimeoutError: it took longer; it is killed, with all that it started, as far as the kernel lets it be.
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    try:
        told, complaint = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        _end(process, kill)
        raise TimeoutError(f"no answer within {within_s:.0f} s") from None
    return EndedProcess(process.returncode, told, complaint)


def _end(process: subprocess.Popen[str], kill: Callable[[int, int], None]) -> None:
    with contextlib.suppress(ProcessLookupError):
        kill(process.pid, signal.SIGKILL)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.returncode = -signal.SIGKILL  # it will be; nobody waits for it any more
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
