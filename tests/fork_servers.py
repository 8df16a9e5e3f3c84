"""Processes that have loaded what tests start again and again, and fork: one of each per worker, from first use on."""

from __future__ import annotations

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent


@cache
def fork_server(name: str, *args: str) -> Path:
    """Where `tests/NAME.py` listens; it is started at first use, with `args`, and lives as long as this process."""
    folder = TemporaryDirectory()
    at = Path(folder.name) / "forks"
    process = subprocess.Popen(
        [sys.executable, "-P", HERE / f"{name}.py", at, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    atexit.register(_end, process, folder)
    assert process.stdout is not None
    assert process.stdout.readline(), f"{name} cannot be loaded"
    return at


def _end(process: subprocess.Popen[bytes], folder: TemporaryDirectory[str]) -> None:
    process.communicate()
    folder.cleanup()
