"""The command line as tests run it: in this process, or on a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
from pathlib import Path

from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.command_line import start_command
from tests.forked_command import ended

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def invoke(*words: str, stdin: str | bytes | None = None) -> Result:
    """Run a command, whatever its exit code."""
    return CliRunner().invoke(app, list(words), input=stdin)


def run(*words: str) -> str:
    """Return what a command that succeeds prints to stdout."""
    done = invoke(*words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def cells(text: str) -> list[list[str]]:
    """The cells of a table that is printed where no terminal is; empty ones are left out."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def on_terminal(*words: str, cwd: Path | None = None, columns: int = 120, typed: str = "") -> str:
    """What a person would see who has `typed` this, escape sequences and all."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    env.pop("NO_COLOR", None)
    running = start_command(words, env=env, cwd=cwd or Path.cwd(), files=(theirs, theirs, theirs))
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while piece := os.read(ours, 65_536):
            shown += piece
    except OSError:  # the far end is closed
        pass
    finally:
        os.close(ours)
        running.settimeout(20)
        ended(running)
    return shown.decode()
