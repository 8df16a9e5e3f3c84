"""A run and one call: what is refused, what is called, what the function prints meanwhile, and what is left."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from pilotlight.cli.commands import run
from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, event, problem, problem_document, result, stream
from tests.waiting import wait_until

RUN, SECOND = "hello-run-abc123", "second-run-abc123"


@pytest.fixture(autouse=True)
def runs(platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform takes runs, whose names are known."""
    monkeypatch.setattr(run, "token", lambda _length: "abc123")
    for name in (RUN, SECOND):
        platform.will("POST", f"/v1/apps/{name}/deploys", answer({"app": name, "revision": 1, "functions": []}))
        platform.will("DELETE", f"/v1/apps/{name}", answer({"app": name, "deleted": True}))


def test_run_deploys_and_calls_once_with_the_log(platform: ScriptedPlatform, folder: Path) -> None:
    """Lines that the function prints go to stderr."""
    lines = [{"at": 1.0, "text": "greeting Ada", "function": "greet", "stream": "stdout"}]
    platform.will("GET", f"/v1/apps/{RUN}/logs", Answer(pieces=[msgspec.json.encode(line) + b"\n" for line in lines]))
    platform.will("POST", f"/v1/functions/{RUN}.greet/calls", stream(event("stage", {"name": "queued"}), result("hi")))
    done = invoke("run", "app.py::greet", "name=Ada")
    assert (done.exit_code, done.stdout) == (0, '"hi"\n')
    assert "  | greeting Ada\n" in done.stderr
    (sent,) = [request.json for request in platform.asked(f"/v1/apps/{RUN}/deploys")]
    assert ([one["spec"]["name"] for one in sent["functions"]], sent["ends_in_s"]) == (["greet"], 60.0)
    assert platform.requests[-1].method == "DELETE"
    assert not platform.asked("/v1/apps/hello/deploys")
    assert platform.asked(f"/v1/apps/{RUN}/logs")[0].query == "function=greet&tail=0&follow=true"
    assert platform.asked(f"/v1/functions/{RUN}.greet/calls")[0].call == {"input": {"name": "Ada"}}


def test_run_without_a_log_still_runs(platform: ScriptedPlatform, folder: Path) -> None:
    """A key may have the scope to call and not to read."""
    platform.will("GET", f"/v1/apps/{SECOND}/logs", problem("forbidden", "no scope"))
    platform.will("POST", f"/v1/functions/{SECOND}.two/calls", stream(result(2)))
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
    platform.will("GET", f"/v1/apps/{RUN}/logs", Answer(hold=True))
    document = problem_document("function_raised", "ValueError: no", traceback="Traceback\n  app.py\n")
    platform.will("POST", f"/v1/functions/{RUN}.greet/calls", stream(event("error", document)))

    done = invoke("run", "app.py::greet", "name=Ada")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "Traceback\n  app.py\nerror: ValueError: no\n" in done.stderr


def test_a_method_of_a_class_is_named_after_a_dot(platform: ScriptedPlatform, folder: Path) -> None:
    """The call goes to the class, with the method beside its arguments."""
    (folder / "model.py").write_text(
        "from pilotlight import App, method\n"
        "@App('hello').gpu_function\nclass Model:\n    @method()\n    def ask(self, text: str) -> str: ...\n"
    )
    platform.will("GET", f"/v1/apps/{RUN}/logs", problem("forbidden", "no scope"))
    platform.will("POST", f"/v1/functions/{RUN}.Model/calls", stream(result("hi")))
    assert invoke("run", "model.py::Model.ask", "text=why").stdout == '"hi"\n'
    assert platform.asked(f"/v1/functions/{RUN}.Model/calls")[0].call == {"input": {"text": "why"}, "method": "ask"}


def test_a_run_that_is_refused_leaves_nothing_to_delete(platform: ScriptedPlatform, folder: Path) -> None:
    """Nothing is called either."""
    platform.will("POST", f"/v1/apps/{RUN}/deploys", problem("quota_exceeded", "too many apps"))

    done = invoke("run", "app.py::greet", "name=Ada")

    assert (done.exit_code, "too many apps" in done.stderr) == (1, True)
    assert {request.method for request in platform.requests} == {"POST"}


@pytest.mark.parametrize("gone", [True, False])
def test_a_run_that_cannot_be_deleted_ends_by_itself(platform: ScriptedPlatform, folder: Path, gone: bool) -> None:
    """Which the command says, unless it has ended already; its answer stands."""
    error = problem("not_found", "There is no app.") if gone else problem("conflict", "It changes.")
    platform.will("DELETE", f"/v1/apps/{RUN}", error)
    platform.will("POST", f"/v1/functions/{RUN}.greet/calls", stream(result("hi")))

    done = invoke("run", "app.py::greet", "name=Ada")

    assert (done.exit_code, done.stdout) == (0, '"hi"\n')
    assert ("is not deleted (It changes.), and ends within 60 s." in done.stderr) is not gone


def test_a_run_is_renewed_as_long_as_its_command_lives(
    platform: ScriptedPlatform, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a renewal that failed."""
    monkeypatch.setattr(run, "RENEWED_EVERY_S", 0.01)
    path, calls = f"/v1/apps/{RUN}/renew", f"/v1/functions/{RUN}.greet/calls"
    platform.will("POST", path, problem("conflict", "It changes."), answer({"app": RUN, "ends_at": 1.0}))
    renewed = threading.Event()
    answers = stream(result("hi"))
    answers.wait_for = renewed
    platform.will("POST", calls, answers)

    def watch() -> None:
        wait_until(lambda: len(platform.asked(path)) >= 3, "it is renewed")
        renewed.set()

    watching = threading.Thread(target=watch)
    watching.start()
    done = invoke("run", "app.py::greet", "name=Ada")
    watching.join()

    assert (done.exit_code, done.stdout) == (0, '"hi"\n')
    assert platform.asked(path)[0].json == {"ends_in_s": 60.0}
