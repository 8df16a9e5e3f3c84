"""Streams whose containers, nodes and connections are killed: their callers read them as if nothing had happened."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import pilotlight
from pilotlight import Function
from tests.system.apps.resume.app import MARK
from tests.system.support.breaking_proxy import breaking_proxy
from tests.system.support.events import Told, events_of, read_events
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

WORDS = 120
PAUSE_S = 0.02
EVENTS = {"Accept": "text/event-stream"}


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


def test_a_dropped_connection_is_read_on_at_another_gateway(platform: Platform) -> None:
    """Behind the last event that came, to the end; whoever is not its tenant finds nothing."""
    path, body = "/v1/functions/resume.tells/calls", {"input": {"words": WORDS, "pause": PAUSE_S}}
    read: list[dict[str, Any]] = []
    with platform.http.stream("POST", path, json=body, headers=EVENTS) as answer:
        call_id = answer.headers["pilotlight-call-id"]
        assert float(answer.headers["pilotlight-resume-s"]) == 30.0
        for event in read_events(answer):
            if event.name == "chunk":
                read.append(event.data)
            if len(read) == 10:
                break
    url, behind = f"{platform.urls[1]}/v1/calls/{call_id}/events", {**EVENTS, "Last-Event-ID": "10"}
    stranger = {"Authorization": f"Bearer {make_tenant(platform, 'stranger')}"}
    for gateway in platform.urls:
        refused = platform.http.get(f"{gateway}/v1/calls/{call_id}/events", headers={**behind, **stranger})
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_call")
    with platform.http.stream("GET", url, headers=behind) as answer:
        told = list(read_events(answer))
    read += [event.data for event in told if event.name == "chunk"]

    assert [chunk["value"] for chunk in read] == undisturbed(WORDS)
    assert told[-1].name == "result"
    assert platform.http.get(url, headers={"Last-Event-ID": str(WORDS + 1)}).status_code == 204


def test_a_client_reads_on_by_itself_and_cancels_by_a_word(platform: Platform) -> None:
    """Its connections break again and again; whoever leaves the loop has ended the call."""
    ports = [urlsplit(url).port or 0 for url in platform.urls]
    with (
        breaking_proxy(ports, 8_000) as port,
        pilotlight.Client(url=f"http://127.0.0.1:{port}", api_key=platform.key) as client,
    ):
        tells = Function.from_name("resume", "tells").options(client=client)
        assert list(tells.remote_gen(words=1_000)) == undisturbed(1_000)
        with closing(tells.remote_gen(words=10_000, pause=PAUSE_S)) as left:  # type: ignore[type-var]  # a generator
            assert next(left) == undisturbed(1)[0]
    wait_until(lambda: platform.container_of("resume", "tells")["running"] == 0, "the call is cancelled")
