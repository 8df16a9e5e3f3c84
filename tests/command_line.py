"""The command line as a person uses it: commands with their own environment, output and exit code.

Each is a fork of one process per worker (`command_forks`). `tests/sdk/cli` tests how processes of their own start.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from tests.forked_command import ended, start

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0


def run_command(
    words: Sequence[str], *, env: Mapping[str, str], within: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Run `pilotlight words` in the root of the code, and read what it prints.

    Raises:
        TimeoutError: it has not ended `within` these seconds.
    """
    with Path(os.devnull).open("rb") as nothing, TemporaryFile() as out, TemporaryFile() as err:
        running = start_command(words, env=env, cwd=ROOT, files=[file.fileno() for file in (nothing, out, err)])
        running.settimeout(within)
        code = ended(running)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(words), code, out.read().decode(), err.read().decode())


def start_command(words: Sequence[str], *, env: Mapping[str, str], cwd: Path, files: Sequence[int]) -> socket.socket:
    """Start `pilotlight words` with `files` as its standard input, output and error; `ended` waits for its end."""
    return start(str(_forks()), words, env, str(cwd), files)


def program(folder: Path) -> Path:
    """A program `pilotlight` in `folder`, for shells that have it in their PATH."""
    path = folder / "pilotlight"
    client = ROOT / "tests" / "forked_command.py"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {client} {_forks()} "$@"\n')
    path.chmod(0o755)
    return path


@cache
def _forks() -> Path:
    """Where the process listens that forks; it is started at first use, and lives as long as this one."""
    folder = TemporaryDirectory()
    at = Path(folder.name) / "forks"
    process = subprocess.Popen(
        [sys.executable, "-P", ROOT / "tests" / "command_forks.py", at], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    atexit.register(_end, process, folder)
    assert process.stdout is not None
    assert process.stdout.readline(), "the command line cannot be loaded"
    return at


def _end(process: subprocess.Popen[bytes], folder: TemporaryDirectory[str]) -> None:
    process.communicate()
    folder.cleanup()
