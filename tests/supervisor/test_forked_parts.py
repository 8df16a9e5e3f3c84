"""A process of the platform that is forked (`tests.module_forks`) is one as it would be executed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.forked_module import ForkedModule
from tests.system.support.platform import platform
from tests.system.support.processes import is_alive
from tests.variants import with_variants
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
Started = ForkedModule | subprocess.Popen[bytes]


@contextmanager
def started(log: Path, *words: str, executed: bool, **env: str) -> Iterator[Started]:
    """A module that runs, either way."""
    whole = {**os.environ, **env}
    with log.open("wb") as out:
        process: Started = (
            subprocess.Popen([sys.executable, "-m", *words], env=whole, cwd=ROOT, stdout=out, stderr=out)
            if executed
            else ForkedModule(words, env=whole, cwd=ROOT, log=out.fileno())
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(20.0)


@pytest.mark.parametrize(
    ("module", "words"),
    with_variants(
        [
            ("pilotlight_gateway", ("--unknown", "1")),
            ("pilotlight_supervisor.up", ("--help",)),
            ("pilotlight_supervisor.up", ("--state-dir",)),
            ("pilotlight_runtime", ("--unknown", "1")),
        ],
        2,
    ),
    ids=str,
)
def test_it_says_the_same_and_ends_alike(tmp_path: Path, module: str, words: tuple[str, ...]) -> None:
    """Its arguments are its own, what it prints goes where it was told to, and its exit code is heard."""

    def said(executed: bool) -> tuple[int, str]:
        with started(tmp_path / "log", module, *words, executed=executed) as process:
            return process.wait(60.0), (tmp_path / "log").read_text()

    assert said(executed=False) == said(executed=True)


def test_its_environment_is_its_own(tmp_path: Path) -> None:
    """A setting of the environment is read, and a wrong one refused, by both alike."""

    def said(executed: bool) -> tuple[int, str]:
        asked = started(tmp_path / "log", "pilotlight_supervisor.up", executed=executed, PILOTLIGHT_PORT="none")
        with asked as process:
            return process.wait(60.0), (tmp_path / "log").read_text()

    code, text = said(executed=False)
    assert (code, text) == said(executed=True)
    assert code != 0
    assert "PILOTLIGHT_PORT" in text


def test_it_is_killed_by_its_pid(tmp_path: Path) -> None:
    """And who waits hears by which signal; who asks meanwhile hears nothing."""
    words = ("pilotlight_supervisor.up", "--state-dir", str(tmp_path / "state"), "--port", "0", "--no-agent")
    with started(tmp_path / "log", *words, executed=False) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)

        os.kill(process.pid, signal.SIGKILL)

        assert process.wait(20.0) == -signal.SIGKILL
        assert process.poll() == -signal.SIGKILL


def test_parts_of_a_forked_platform_are_its_children(tmp_path: Path) -> None:
    """Each in a session of its own, with a log of its own, and gone with it."""
    with platform(tmp_path, "--cpu-slots", "1", "--blanks", "0") as running:
        pids = {name: pid for name, pid in running.pids.items() if name != "nats"}
        assert set(pids) == {"gateway", "controller", "duties", "agent"}
        for name, pid in pids.items():
            assert _parent_and_session(pid) == (running.process.pid, pid)
            assert Path(f"/proc/{pid}/fd/1").readlink() == running.state / "logs" / f"{name}.log"
            assert _told_by(running.state / "logs" / f"{name}.log") == {name}

        os.kill(running.process.pid, signal.SIGKILL)

        wait_until(lambda: not any(map(is_alive, pids.values())), "its parts end with it")


def _parent_and_session(pid: int) -> tuple[int, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[1]), int(fields[3])


def _told_by(log: Path) -> set[str]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    return {line["process"] for line in lines}
