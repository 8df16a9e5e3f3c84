"""The command line as a person uses it: commands with their own environment, output and exit code.

Each is a fork of one process per worker (`command_forks`). `tests/sdk/cli` tests how processes of their own start.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from tests.fork_servers import fork_server
from tests.forked_command import ended, start

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0


def run_command(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path = ROOT, within: float = LIMIT_S, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `pilotlight words`, in the root of the code unless told otherwise, and read what it prints.

    `given` is its standard input.

    Raises:
        TimeoutError: it has not ended `within` these seconds.
    """
    return _read(words, env, cwd, within, given=given)


def run_program(
    text: str, *, env: Mapping[str, str], cwd: Path, within: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Run `python -c text`, a program of a user of the SDK, and read what it prints.

    Raises:
        TimeoutError: it has not ended `within` these seconds.
    """
    return _read((), env, cwd, within, text)


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


def _read(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, within: float, program: str | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    with TemporaryFile() as standard_input, TemporaryFile() as out, TemporaryFile() as err:
        standard_input.write(given.encode())
        standard_input.seek(0)
        files = [file.fileno() for file in (standard_input, out, err)]
        running = start(str(_forks()), words, env, str(cwd), files, program)
        running.settimeout(within)
        code = ended(running)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(list(words), code, out.read().decode(), err.read().decode())


def _forks() -> Path:
    return fork_server("command_forks")
