"""`pilotlight deploy` and `run`, and the command lines that they print."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight import App, batched, method
from pilotlight.cli.example_commands import call_line, curl_line, example_arguments
from pilotlight.cli.main import app
from pilotlight_core.model.spec import FunctionSpec
from tests.sdk.definitions.test_schema import Colour, Match, Point, Tree
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, event, problem, result, stream

CODE = """
from pilotlight import App, gpu_function
app = App("hello")
@app.gpu_function
def greet(name: str = "world") -> str: return name
@gpu_function(app="second")
def two(number: int) -> int: return number
"""


@pytest.fixture
def folder(platform: ScriptedPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an app, and a platform that takes it."""
    for name, function in (("hello", "greet"), ("second", "two")):
        deployed = {
            "name": function, "version": f"{name}.{function}@v3", "version_id": "ver_1", "changed": name == "hello",
            "endpoint": f"/v1/functions/{name}.{function}/calls",
        }  # fmt: skip
        platform.will("POST", f"/v1/apps/{name}/deploys", answer({"app": name, "revision": 3, "functions": [deployed]}))
    place = tmp_path / "code"
    place.mkdir()
    (place / "app.py").write_text(CODE)
    monkeypatch.chdir(place)
    return place


def test_a_deploy_prints_lines_that_work(platform: ScriptedPlatform, folder: Path) -> None:
    """For curl, with the key's variable, and for the command line."""
    done = CliRunner().invoke(app, ["deploy", "app.py", "-m", "why"])
    assert done.exit_code == 0, done.stderr
    assert "hello.greet@v3\n" in done.stdout
    assert "second.two@v3  (unchanged)" in done.stdout
    assert "  pilotlight call hello.greet name=world\n" in done.stdout
    assert "  pilotlight call second.two number=1\n" in done.stdout
    assert done.stderr == f"packed {folder.name}: 1 file, {(folder / 'app.py').stat().st_size} B\n"
    assert platform.asked("/v1/apps/hello/deploys")[0].json["message"] == "why"

    platform.will("POST", "/v1/functions/hello.greet/calls", answer({"output": "hi"}))
    curl = next(line for line in done.stdout.splitlines() if line.startswith("  curl"))
    assert shutil.which("curl"), "curl is needed to see that the printed line works"
    ran = subprocess.run(["sh", "-c", curl], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert ran.stdout == '{"output":"hi"}'
    request = platform.asked("/v1/functions/hello.greet/calls")[0]
    assert request.headers["authorization"] == f"Bearer {os.environ['PILOTLIGHT_API_KEY']}"
    assert request.json == {"input": {"name": "world"}}


def test_what_the_platform_warns_of_is_said(platform: ScriptedPlatform, folder: Path) -> None:
    """Apart from what was deployed."""
    warned = {"app": "hello", "revision": 3, "functions": [], "warnings": ["greet: of min_containers=9 only 4."]}
    platform.will("POST", "/v1/apps/hello/deploys", answer(warned))

    done = CliRunner().invoke(app, ["deploy", "app.py"])

    assert done.exit_code == 0
    assert "warning: greet: of min_containers=9 only 4.\n" in done.stderr
    assert "warning" not in done.stdout


def test_a_deploy_as_json(folder: Path) -> None:
    """One object per app."""
    done = CliRunner().invoke(app, ["deploy", "app.py", "--json"])
    assert [deployed["app"] for deployed in msgspec.json.decode(done.stdout)] == ["hello", "second"]


def test_what_cannot_be_deployed_is_said(platform: ScriptedPlatform, folder: Path) -> None:
    """On this side of the wire without advice for the other."""
    (folder / "model.pkl").touch()
    done = CliRunner().invoke(app, ["deploy", "app.py"])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "'model.pkl' is a pickle" in done.stderr
    assert platform.requests == []


def test_run_deploys_and_calls_once_with_the_log(platform: ScriptedPlatform, folder: Path) -> None:
    """What the function prints stands beside the answer."""
    lines = [{"at": 1.0, "text": "greeting Ada", "function": "greet", "stream": "stdout"}]
    platform.will("GET", "/v1/apps/hello/logs", Answer(pieces=[msgspec.json.encode(line) + b"\n" for line in lines]))
    platform.will("POST", "/v1/functions/hello.greet/calls", stream(event("stage", {"name": "queued"}), result("hi")))
    done = CliRunner().invoke(app, ["run", "app.py::greet", "name=Ada"])
    assert (done.exit_code, done.stdout) == (0, '"hi"\n')
    assert "  | greeting Ada\n" in done.stderr
    assert platform.asked("/v1/apps/hello/logs")[0].query == "function=greet&tail=0&follow=true"
    assert platform.asked("/v1/functions/hello.greet/calls")[0].call == {"input": {"name": "Ada"}}


def test_run_without_a_log_still_runs(platform: ScriptedPlatform, folder: Path) -> None:
    """A key may be allowed to call and not to read."""
    platform.will("GET", "/v1/apps/second/logs", problem("forbidden", "no scope"))
    platform.will("POST", "/v1/functions/second.two/calls", stream(result(2)))
    done = CliRunner().invoke(app, ["run", "app.py::two", "number=2", "--json"])
    assert done.exit_code == 0
    assert "cannot be followed: no scope" in done.stderr
    assert CliRunner().invoke(app, ["run", "app.py"]).exit_code == 1


apps = App("invitations")


@apps.gpu_function
def every(
    text: str, match: Match, colour: Colour, point: Point, tree: Tree, pair: tuple[int, str], many: list[int]
) -> None: ...


@apps.gpu_function
def some(number: int | None, flag: bool, share: float, data: bytes, more: dict[str, int] = {"a": 1}) -> None: ...  # noqa: B006


@apps.gpu_function
class Model:
    @method()
    def ask(self, question: str = "why?") -> str:
        return question

    @batched(max_batch_size=2)
    def embed(self, text: list[str]) -> list[int]:
        return [len(item) for item in text]


def specs() -> list[FunctionSpec]:
    return [function.spec for function in apps.functions.values()]


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.name)
def test_example_arguments_are_accepted(spec: FunctionSpec) -> None:
    """By the very schema that the gateway checks with."""
    for found in spec.methods:
        jsonschema_rs.validator_for(found.input_schema).validate(example_arguments(found.input_schema))


def test_printed_lines_quote_what_a_shell_would_take_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """And strings that would be read as JSON."""
    ask: Any = specs()[2].methods[0]
    assert call_line("a.Model", ask) == "pilotlight call a.Model.ask question='why?'"
    monkeypatch.delenv("PILOTLIGHT_API_KEY", raising=False)
    assert '"method":"ask"' in curl_line("http://x", ask)
    assert "$(pilotlight key show)" in curl_line("http://x", ask)
