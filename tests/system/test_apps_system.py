"""Apps as their authors and other tenants see them: versions, deploys under load, logs, containers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.system.support.platform import ROOT, Platform
from tests.waiting import wait_until

SOURCE = """
import time
from pilotlight import App

app = App("{app}")


@app.gpu_function(scaledown_window={window}, max_containers=2)
def tell(seconds: float = 0.0) -> str:
    print("{word} was asked")
    time.sleep(seconds)
    return "{word}"
"""


def write(folder: Path, app: str, word: str, window: float = 1.0) -> Path:
    """An app whose function says a word, and stays for `window` seconds."""
    path = folder / "app.py"
    path.write_text(SOURCE.format(app=app, word=word, window=window))
    return path


def test_a_version_can_be_pinned(platform: Platform, tmp_path: Path) -> None:
    """A call goes to what is deployed, or to the version that it names; the answer says which it was."""
    for word in ("first", "second"):
        platform.deploy(write(tmp_path, "pinned", word))

    answers = [platform.answer(f"pinned.tell{pin}") for pin in ("", "@v1", "@v2")]

    assert [answer["output"] for answer in answers] == ["second", "first", "second"]
    assert [answer["version"] for answer in answers] == ["pinned.tell@v2", "pinned.tell@v1", "pinned.tell@v2"]
    history = json.loads(platform.cli("app", "history", "pinned", "--json").stdout)
    assert [deploy["revision"] for deploy in history] == [1, 2]


def test_a_deploy_that_changes_nothing_makes_no_version(platform: Platform, tmp_path: Path) -> None:
    """The same code and options are the same version."""
    for _ in range(2):
        platform.deploy(write(tmp_path, "same", "word"))

    assert platform.answer("same.tell")["version"] == "same.tell@v1"


def test_a_deploy_under_load_loses_no_call(platform: Platform, tmp_path: Path) -> None:
    """Callers notice nothing but the new answer."""
    platform.deploy(write(tmp_path, "busy", "word 0"))
    over = threading.Event()
    answers: list[httpx.Response] = []

    def calls() -> None:
        while not over.is_set():
            answers.append(platform.call("busy.tell", seconds=0.05))

    def heard() -> set[str]:
        return {answer.json()["output"] for answer in answers if answer.status_code == 200}

    with ThreadPoolExecutor(6) as callers:
        loops = [callers.submit(calls) for _ in range(6)]
        try:
            wait_until(heard, "the callers hear the first answer")
            for number in (1, 2, 3):
                platform.deploy(write(tmp_path, "busy", f"word {number}"))
                assert platform.output("busy.tell") == f"word {number}"
            wait_until(lambda: "word 3" in heard(), "the callers hear the new answer")
        finally:
            over.set()
        for loop in loops:
            loop.result()

    assert {answer.status_code for answer in answers} == {200}


def test_a_stopped_app_is_gone_until_it_is_deployed_again(platform: Platform, tmp_path: Path) -> None:
    """Its calls are refused, its containers go, and a deploy brings it back."""
    path = write(tmp_path, "halted", "word")
    platform.deploy(path)
    assert platform.output("halted.tell") == "word"

    platform.cli("app", "stop", "halted")

    assert platform.call("halted.tell").json()["code"] == "unknown_function"
    wait_until(lambda: not platform.containers("halted"), "its containers go")
    platform.deploy(path)
    assert platform.output("halted.tell") == "word"


def test_running_containers_are_listed(platform: Platform, stranger: httpx.Client, tmp_path: Path) -> None:
    """With what they run and what holds them in; to nobody but their tenant."""
    platform.deploy(write(tmp_path, "listed", "word", window=300.0))
    platform.output("listed.tell")
    known = platform.container_of("listed", "tell")

    shown = json.loads(platform.cli("container", "list", "--json").stdout)
    [container] = [one for one in shown if one["app"] == "listed"]
    assert container["id"] == known["id"]
    assert (container["function"], container["node"], container["sandbox"]) == ("tell", "local", "bubblewrap")
    assert container["slice"].startswith("cpu-")
    assert stranger.get("/v1/containers").json()["containers"] == []
    platform.cli("app", "stop", "listed")


@pytest.fixture
def twins(platform: Platform, stranger_key: str, tmp_path: Path) -> None:
    """Two tenants with an app of the same name."""
    platform.deploy(write(tmp_path, "twin", "ours"))
    platform.cli("deploy", str(write(tmp_path, "twin", "theirs")), key=stranger_key)


@pytest.mark.usefixtures("twins")
def test_tenants_do_not_see_each_other(platform: Platform, stranger: httpx.Client) -> None:
    """The same names are different functions, and each tenant finds only its own lines and apps."""
    theirs = stranger.post("/v1/functions/twin.tell/calls", json={})
    assert (platform.output("twin.tell"), theirs.json()["output"]) == ("ours", "theirs")

    def texts(http: httpx.Client) -> set[str]:
        return {json.loads(line)["text"] for line in http.get("/v1/apps/twin/logs").text.splitlines() if line}

    wait_until(lambda: texts(platform.http) and texts(stranger), "both are logged")
    assert texts(platform.http) == {"ours was asked"}
    assert texts(stranger) == {"theirs was asked"}
    assert [app["app"] for app in stranger.get("/v1/apps").json()["apps"]] == ["twin"]
    assert stranger.get("/v1/apps/pinned/logs").status_code == 404
    assert {line["app"] for line in stranger.get("/v1/usage").json()["lines"]} <= {"twin"}


@pytest.mark.usefixtures("twins")
def test_logs_are_followed_live(platform: Platform, stranger: httpx.Client) -> None:
    """`logs -f` shows what was there and then what comes, and nothing of another tenant's."""
    first = platform.answer("twin.tell")["id"]
    wait_until(lambda: first in [line["call"] for line in platform.logs("twin")], "the first line is stored")
    known = len(platform.logs("twin"))
    with following(platform, "twin.tell") as lines:
        seen = [next(lines) for _ in range(known)]
        assert stranger.post("/v1/functions/twin.tell/calls", json={}).status_code == 200
        call = platform.answer("twin.tell")["id"]
        seen.append(next(lines))

    assert [json.loads(line)["text"] for line in seen] == ["ours was asked"] * len(seen)
    assert json.loads(seen[-1])["call"] == call


@contextmanager
def following(platform: Platform, name: str) -> Iterator[Iterator[str]]:
    """The lines that `pilotlight logs -f` prints."""
    command = [sys.executable, "-m", "pilotlight.cli.main", "logs", "-f", name, "--json"]
    with subprocess.Popen(command, env=platform.env, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield iter(process.stdout)
        finally:
            process.terminate()
