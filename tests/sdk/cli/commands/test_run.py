"""A deploy and one call: what is refused, what is called, and what the function prints meanwhile."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import Answer, ScriptedPlatform, event, problem, problem_document, result, stream


def test_run_deploys_and_calls_once_with_the_log(platform: ScriptedPlatform, folder: Path) -> None:
    """Lines that the function prints go to stderr."""
    lines = [{"at": 1.0, "text": "greeting Ada", "function": "greet", "stream": "stdout"}]
    platform.will("GET", "/v1/apps/hello/logs", Answer(pieces=[msgspec.json.encode(line) + b"\n" for line in lines]))
    platform.will("POST", "/v1/functions/hello.greet/calls", stream(event("stage", {"name": "queued"}), result("hi")))
    done = invoke("run", "app.py::greet", "name=Ada")
    assert (done.exit_code, done.stdout) == (0, '"hi"\n')
    assert "  | greeting Ada\n" in done.stderr
    assert platform.asked("/v1/apps/hello/logs")[0].query == "function=greet&tail=0&follow=true"
    assert platform.asked("/v1/functions/hello.greet/calls")[0].call == {"input": {"name": "Ada"}}


def test_run_without_a_log_still_runs(platform: ScriptedPlatform, folder: Path) -> None:
    """A key may have the scope to call and not to read."""
    platform.will("GET", "/v1/apps/second/logs", problem("forbidden", "no scope"))
    platform.will("POST", "/v1/functions/second.two/calls", stream(result(2)))
    done = invoke("run", "app.py::two", "number=2", "--json")
    assert done.exit_code == 0
    assert "cannot be followed: no scope" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["app.py"], 1, "'app.py' names no function: expected PATH::function."),
        (["app.py::nobody"], 1, "app has no function 'nobody'; it has greet, two."),
        (["app.py::greet", "Ada"], 2, "'Ada' has no value"),
        (["gone.py::greet"], 1, "There is no file"),
    ],
)
def test_what_cannot_be_run_is_not_deployed(
    platform: ScriptedPlatform, folder: Path, words: list[str], code: int, message: str
) -> None:
    """The whole command line is checked before any request."""
    done = invoke("run", *words)
    assert done.exit_code == code
    assert message in done.stderr
    assert platform.requests == []


def test_a_call_that_fails_ends_with_its_traceback(platform: ScriptedPlatform, folder: Path) -> None:
    """The exit code is 1 and nothing goes to stdout, though the deploy went well."""
    platform.will("GET", "/v1/apps/hello/logs", Answer(hold=True))
    document = problem_document("function_raised", "ValueError: no", traceback="Traceback\n  app.py\n")
    platform.will("POST", "/v1/functions/hello.greet/calls", stream(event("error", document)))

    done = invoke("run", "app.py::greet", "name=Ada")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "Traceback\n  app.py\nerror: ValueError: no\n" in done.stderr


def test_a_method_of_a_class_is_named_after_a_dot(platform: ScriptedPlatform, folder: Path) -> None:
    """The call goes to the class, with the method beside its arguments."""
    (folder / "model.py").write_text(
        "from pilotlight import App, method\n"
        "@App('hello').gpu_function\nclass Model:\n    @method()\n    def ask(self, text: str) -> str: ...\n"
    )
    platform.will("GET", "/v1/apps/hello/logs", problem("forbidden", "no scope"))
    platform.will("POST", "/v1/functions/hello.Model/calls", stream(result("hi")))
    assert invoke("run", "model.py::Model.ask", "text=why").stdout == '"hi"\n'
    assert platform.asked("/v1/functions/hello.Model/calls")[0].call == {"input": {"text": "why"}, "method": "ask"}
