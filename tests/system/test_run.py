"""`pilotlight run` runs a file as it is now beside what is deployed, which goes on as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from tests.system.support.platform import ROOT, Platform
from tests.variants import with_variants
from tests.waiting import wait_until

pytestmark = pytest.mark.system
CODE = """
from pilotlight import App, gpu_function

app = App("tried")

@app.gpu_function(min_containers=1)
async def answer(seconds: float = 0.0) -> str:
    import asyncio
    print("{word} begins", flush=True)
    await asyncio.sleep(seconds)
    return "{word}"
"""


@pytest.fixture
def file(platform: Platform, tmp_path: Path) -> Iterator[Path]:
    """What is deployed answers `deployed`; the file says `altered` now."""
    path = tmp_path / "app.py"
    path.write_text(CODE.format(word="deployed"))
    platform.deploy(path)
    path.write_text(CODE.format(word="altered"))
    yield path
    platform.cli("app", "delete", "tried", "--yes")


def run_names(platform: Platform) -> list[str]:
    """The apps of containers that belong to runs."""
    return [one["app"] for one in platform.containers() if one["app"].startswith("tried-run-")]


@contextmanager
def running(platform: Platform, path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, while its call runs."""
    words = [sys.executable, "-m", "pilotlight.cli.main", "run", f"{path}::answer", "seconds=600"]
    with subprocess.Popen(words, env=platform.env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: any(one["running"] for one in platform.containers() if "-run-" in one["app"]), "it runs")
            yield process
        finally:
            process.kill()


def test_what_is_deployed_goes_on_while_a_run_answers_as_the_file_is_now(platform: Platform, file: Path) -> None:
    """Also calls that are made meanwhile; afterwards nothing of the run is left."""
    assert platform.output("tried.answer") == "deployed"
    before, done = platform.http.get("/v1/apps/tried").json(), Event()

    def call_on() -> set[str]:
        answers = set()
        while not done.is_set():
            answers.add(platform.output("tried.answer"))
        return answers

    with ThreadPoolExecutor(1) as pool:
        calling = pool.submit(call_on)
        try:
            ran = platform.cli("run", f"{file}::answer")
        finally:
            done.set()
        assert calling.result() == {"deployed"}

    assert ran.stdout == '"altered"\n'
    assert "deployed begins" not in ran.stderr
    told = iter([ran.stderr])  # the last lines are waited for a second: a busy machine may be later
    wait_until(
        lambda: "  | altered begins\n" in (next(told, "") or platform.cli("run", f"{file}::answer").stderr),
        "the lines of a run are printed",
    )
    assert platform.http.get("/v1/apps/tried").json()["revision"] == before["revision"]
    assert [app["app"] for app in platform.http.get("/v1/apps").json()["apps"] if "tried" in app["app"]] == ["tried"]
    wait_until(lambda: not run_names(platform), "its containers are gone")


@pytest.mark.parametrize("number", with_variants([signal.SIGINT, signal.SIGTERM], 1))
def test_a_run_that_is_interrupted_leaves_nothing(platform: Platform, file: Path, number: signal.Signals) -> None:
    """Its call is cancelled, its app deleted, and its container goes."""
    with running(platform, file) as process:
        (name,) = set(run_names(platform))
        os.kill(process.pid, number)
        assert process.wait(60.0) != 0

    assert platform.http.get(f"/v1/apps/{name}").status_code == 404
    wait_until(lambda: not run_names(platform), "its container is gone", 120.0)
    assert platform.output("tried.answer") == "deployed"


def test_a_run_whose_command_is_killed_has_an_end(platform: Platform, file: Path) -> None:
    """It is known as long as it might be renewed, and says when that is over."""
    with running(platform, file) as process:
        (name,) = set(run_names(platform))
        process.kill()
        process.wait(60.0)

    renewed = platform.http.post(f"/v1/apps/{name}/renew", json={"ends_in_s": 10}).json()
    assert renewed["ends_at"] > 0
    ended = (f"The run {name} has ended.", f"There is no function {name}.answer.")  # the second: it is deleted already
    wait_until(lambda: platform.call(f"{name}.answer").json().get("detail", "").startswith(ended), "it ends")
    wait_until(lambda: not run_names(platform), "its container is gone", 120.0)
