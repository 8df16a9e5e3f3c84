"""`pilotlight placement`: sentences for people, JSON for scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.sdk.scripted import ScriptedPlatform, answer

TOLD: dict[str, Any] = {
    "lines": ["ctr_1 runs on a whole T4 on n1.", "Of 2 devices and slots 1 would do."],
    "decisions": [],
}
PLAN: dict[str, Any] = {
    "version": "chat.talk@v2",
    "lines": ["H100:", "  weights"],
    "plans": [],
    "fits": True,
    "reason": "",
}


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["placement", *words])


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["ctr_1"], "container=ctr_1"),
        (["search.embed"], "function=search.embed"),
        (["acme:search.embed"], "function=acme:search.embed"),
        (["search.Index.find"], "function=search.Index&method=find"),
        (["ctr_1", "--why-not", "n2"], "container=ctr_1&why_not=n2"),
        (["--why-not", "n2"], "why_not=n2"),
    ],
)
def test_each_subject_is_one_request(platform: ScriptedPlatform, words: list[str], query: str) -> None:
    """The explanation is printed line by line."""
    platform.will("GET", "/v1/placement/explain", answer(TOLD))

    done = run("explain", *words)

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == TOLD["lines"]
    assert (platform.requests[0].path, platform.requests[0].query) == ("/v1/placement/explain", query)
    assert json.loads(run("explain", *words, "--json").stdout) == TOLD


def test_an_explanation_needs_a_subject() -> None:
    """Without one nothing is sent."""
    done = run("explain")

    assert done.exit_code == 1
    assert "Name a container, a function, or a node" in done.stderr


@pytest.mark.parametrize("fits", [True, False])
def test_a_plan_shows_its_arithmetic(platform: ScriptedPlatform, *, fits: bool) -> None:
    """The exit code is 0 only if the fleet could hold the function."""
    platform.will("GET", "/v1/functions/chat.talk/placement", answer(PLAN | {"fits": fits}))

    done = run("plan", "chat.talk")

    assert done.exit_code == (0 if fits else 1)
    assert done.stdout.splitlines() == ["chat.talk@v2", "H100:", "  weights"]
    assert platform.requests[0].path == "/v1/functions/chat.talk/placement"
    assert json.loads(run("plan", "chat.talk", "--json").stdout)["fits"] is fits


APP = """
import pilotlight

app = pilotlight.App("chat")


@app.gpu_function(gpu="T4", vram="8GiB")
def talk(text: str) -> str:
    return text


@app.gpu_function
def other() -> str:
    return ""
"""


CLASS = """
import pilotlight

app = pilotlight.App("chat")


@app.gpu_function(gpu="T4", vram="8GiB")
class Talker:
    @pilotlight.method
    def say(self, text: str) -> str:
        return text
"""


def test_a_file_is_planned_before_its_deploy(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Each function of the file is planned, or the named one."""
    (tmp_path / "app.py").write_text(APP)
    platform.will("POST", "/v1/placement/plan", answer(PLAN | {"version": "talk"}), answer(PLAN | {"fits": False}))

    one = run("plan", f"{tmp_path / 'app.py'}::talk")
    every = run("plan", str(tmp_path / "app.py"))

    assert (one.exit_code, one.stdout.splitlines()[0]) == (0, "talk")
    assert every.exit_code == 1
    specs = [request.json["spec"]["name"] for request in platform.asked("/v1/placement/plan")]
    assert specs == ["talk", "talk", "other"]


def test_a_rate_is_passed_on(platform: ScriptedPlatform) -> None:
    """The platform counts the containers for the rate."""
    platform.will("GET", "/v1/functions/chat.talk/placement", answer(PLAN))

    assert run("plan", "chat.talk", "--rps", "50").exit_code == 0
    assert platform.requests[0].query == "rps=50"


def test_a_method_is_planned_as_its_class(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """A method of a deployed class, pinned or not, and of a file is sent beside its class."""
    (tmp_path / "app.py").write_text(CLASS)
    platform.will("GET", "/v1/functions/chat.Talker/placement", answer(PLAN))
    platform.will("GET", "/v1/functions/chat.Talker@v2/placement", answer(PLAN))
    platform.will("POST", "/v1/placement/plan", answer(PLAN))

    for word in ("chat.Talker.say", "chat.Talker.say@v2", f"{tmp_path / 'app.py'}::Talker.say"):
        assert run("plan", word).exit_code == 0

    assert [request.query for request in platform.requests[:2]] == ["method=say", "method=say"]
    asked = platform.requests[2].json
    assert (asked["spec"]["name"], asked["method"]) == ("Talker", "say")
