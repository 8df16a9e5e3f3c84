"""Whoever follows a page: writes its files and runs its commands and programs, in an empty folder, in order."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.command_line import run_program
from tests.system.support.page_blocks import Block, BlockKind, Command, blocks_of, commands_of, difference
from tests.waiting import pauses_between_questions

ELSEWHERE = {
    "make demo": "it installs, and starts a platform of its own",
    "pilotlight login https://gpu.example.com": "it waits for a person at a provider; test_logins.py has one",
    "pilotlight login https://gpu.example.com --browser": "the same",
    "make test": "it is what runs this",
    "make up": "it installs, and starts what the platform of the tests is started by",
}
"""Commands that are not run, and why."""
ADDRESS = "http://127.0.0.1:8470"
"""Where pages say that a platform is."""
LIMIT_S = 90.0
LATER = re.compile(r"pilotlight (logs|usage)|/v1/usage|/logs\b")
"""Commands that read what arrives a moment after the answer; they are repeated until it has."""
ARRIVES_S = 30.0
FAILS = "error:"
"""A command fails if and only if a line that is shown begins so."""


@dataclass(kw_only=True)
class PageReader:
    """Follows one page; `env` says where the platform is, whose address is `url`."""

    folder: Path
    state: Path
    """A file: the variables that commands have set."""
    env: Mapping[str, str]
    url: str
    commands: int = field(default=0, init=False)

    def follow(self, text: str, name: str) -> None:
        """Do what the page says, up to the first thing that does not go as it says.

        Raises:
            AssertionError: naming the page, the line and what was printed.
        """
        for block in blocks_of(text):
            where = f"{name}:{block.line}"
            if block.kind is BlockKind.FILE:
                path = self.folder / block.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.kind is BlockKind.PROGRAM:
                self._run_program(block, where)
            else:
                for command in commands_of(block):
                    self._run_command(command, where)

    def _run_program(self, block: Block, where: str) -> None:
        text = block.text.replace(ADDRESS, self.url)
        done = run_program(text, env=self.env, cwd=self.folder, within=LIMIT_S)
        assert done.returncode == 0, f"{where}: the program failed\n{done.stdout}{done.stderr}"
        if block.shown is not None:
            wrong = difference(block.shown.splitlines(), self._lines(done.stdout), self._lines(done.stderr))
            assert wrong is None, f"{where}: {wrong}\n{done.stdout}{done.stderr}"

    def _run_command(self, command: Command, where: str) -> None:
        if command.text in ELSEWHERE:
            return
        self.commands += 1
        latest = time.monotonic() + (ARRIVES_S if LATER.search(command.text) else 0)
        pauses = pauses_between_questions()
        while (wrong := self._failure(command)) is not None:
            assert time.monotonic() < latest, f"{where}: {wrong}"
            time.sleep(next(pauses))

    def _failure(self, command: Command) -> str | None:
        """Run a command; how it did not go as the page shows, with what it printed."""
        keep = f"set -aeo pipefail; [ ! -e {self.state} ] || . {self.state}; trap 'export -p > {self.state}' EXIT\n"
        done = self._run(["bash", "-c", keep + command.text.replace(ADDRESS, self.url)])
        fails = any(line.startswith(FAILS) for line in command.shown)
        wrong = None
        if (done.returncode != 0) != fails:
            wrong = f"exit code {done.returncode}"
        elif command.shown:
            wrong = difference(command.shown, self._lines(done.stdout), self._lines(done.stderr))
        return wrong and f"{wrong}\n$ {command.text}\n{done.stdout}{done.stderr}"

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def _lines(self, text: str) -> list[str]:
        return text.replace(self.url, ADDRESS).splitlines()
