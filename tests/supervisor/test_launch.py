"""The launcher: the command takes its place, or it refuses."""

from __future__ import annotations

import subprocess
import sys

from pilotlight_supervisor import launch
from pilotlight_supervisor.embedded_bus import with_parent


def test_the_command_takes_its_place() -> None:
    """Arguments, output and exit code are the command's."""
    done = subprocess.run(
        with_parent("/bin/sh", "-c", "echo $0 $1; exit 3", "a b", "c"), capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.returncode) == ("a b c\n", 3)


def test_an_orphan_does_not_start() -> None:
    """If its parent is gone already, nothing runs."""
    command = [sys.executable, "-I", "-S", launch.__file__, "1", "/bin/echo", "ran"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert done.stdout == ""
    assert "the process that started it is gone" in done.stderr
