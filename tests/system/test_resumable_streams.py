"""Streams whose containers, nodes and connections are killed: their callers read them as if nothing had happened."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.system.apps.resume.app import MARK
from tests.system.support.events import Told, events_of
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

WORDS = 120
PAUSE_S = 0.02


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Two gateways and two nodes of its own, since its parts are killed."""
    folder = tmp_path_factory.mktemp("resume")
    options = ("--extra-gateways", "1", "--extra-agents", "1", "--cpu-slots", "2", "--blanks", "1")
    with run_platform(folder, *options) as running:
        running.deploy(APPS / "resume" / "app.py")
        yield running


def undisturbed(words: int) -> list[str]:
    """What the function yields."""
    said, last = [], 1
    for _ in range(words):
        last = last * 48271 % 2147483647
        said.append(f"{last:x} ")
    return said


def teller(platform: Platform) -> tuple[str, int]:
    """The agent below which a guest of the function runs, and that guest."""
    for name in ("agent", "agent-2"):
        for pid in descendants(platform.pids[name]):
            process = Path(f"/proc/{pid}")
            try:
                if b"bwrap" not in (process / "cmdline").read_bytes() and (process / f"root{MARK}").exists():
                    return name, pid
            except OSError:
                continue
    raise AssertionError("no guest of the function runs")


def is_gone(pid: int) -> bool:
    return not is_alive(pid)


def read_while(platform: Platform, kill_at: int, kill: str) -> list[Told]:
    """All events of a call, in whose middle a guest or an agent is killed."""
    told: list[Told] = []
    for event in events_of(platform, "resume.tells", words=WORDS, pause=PAUSE_S):
        told.append(event)
        if event.name == "chunk" and event.data["seq"] == kill_at:
            agent, guest = teller(platform)
            pid = guest if kill == "guest" else platform.pids[agent]
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(is_gone, pid), f"the {kill} is gone")
    return told


@pytest.mark.parametrize("kill", ["guest", "agent"])
def test_a_stream_goes_on_elsewhere(platform: Platform, kill: str) -> None:
    """Its container is killed, or its node: on the same connection nothing is lost, and nothing comes twice."""
    told = read_while(platform, 40, kill)
    chunks = [event.data for event in told if event.name == "chunk"]

    assert [chunk["value"] for chunk in chunks] == undisturbed(WORDS)
    assert [chunk["seq"] for chunk in chunks] == list(range(1, WORDS + 1))
    assert told[-1].name == "result", told[-1]
    assert "moving" in [event.data["name"] for event in told if event.name == "stage"]
