"""`pilotlight call`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.sdk.scripted import JOB, ScriptedPlatform, chunk, event, job_taken, problem_document, result, stream

GREET = "/v1/functions/hello.greet/calls"


def call(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["call", *words], input=stdin)


def test_the_answer_is_json_on_stdout(platform: ScriptedPlatform) -> None:
    """The summary of the call's time goes to stderr."""
    platform.will("POST", GREET, stream(event("stage", {"name": "queued", "ms": 1}), result({"a": "ü"})))
    done = call("hello.greet", "name=Ada")
    assert (done.exit_code, msgspec.json.decode(done.stdout)) == (0, {"a": "ü"})
    assert done.stderr == "hello.greet@v1  12 ms (queue 1.0 ms, execute 8.0 ms)  0.000000000001 USD\n"
    assert platform.requests[0].query == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["name=Ada"], {"name": "Ada"}),
        (["n=3", "f=1.5", "b=true", "x=null", "l=[1, 2]"], {"n": 3, "f": 1.5, "b": True, "x": None, "l": [1, 2]}),
        (['s="3"', "t=a=b", "e="], {"s": "3", "t": "a=b", "e": ""}),
        (["--input", '{"a": 1, "b": 2}', "b=3"], {"a": 1, "b": 3}),
        (["--input", "-"], {"from": "stdin"}),
    ],
)
def test_arguments_are_json_if_they_can_be(platform: ScriptedPlatform, words: list[str], expected: Any) -> None:
    """Other values are strings, and single arguments override --input."""
    platform.will("POST", GREET, stream(result(None)))
    assert call("hello.greet", *words, stdin='{"from": "stdin"}').exit_code == 0
    assert platform.requests[0].call["input"] == expected


def test_input_may_be_a_file(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """A file is named with an @, and a missing one is a usage error."""
    platform.will("POST", GREET, stream(result(None)))
    (tmp_path / "in.json").write_text('{"a": [1]}')
    assert call("hello.greet", "--input", f"@{tmp_path / 'in.json'}").exit_code == 0
    assert platform.requests[0].call["input"] == {"a": [1]}
    assert call("hello.greet", "--input", "@missing.json").exit_code == 2


def test_a_method_may_stand_in_the_ref(platform: ScriptedPlatform) -> None:
    """A method is part of the ref, or an option."""
    platform.will("POST", "/v1/functions/hello.Model@v2/calls", stream(result(1)))
    for words in (["hello.Model.embed@v2"], ["hello.Model@v2", "--method", "embed"]):
        assert call(*words, "--deadline", "5").stdout == "1\n"
    assert [request.call["method"] for request in platform.requests] == ["embed", "embed"]
    assert 0 < platform.requests[0].call["deadline_ms"] <= 5000


def test_chunks_are_lines(platform: ScriptedPlatform) -> None:
    """Each chunk is a line, with --json an object with its number."""
    events = stream(chunk(1, {"w": 1}), chunk(2, "two"), result(None))
    platform.will("POST", GREET, events)
    assert call("hello.greet").stdout == '{"w":1}\n"two"\n'
    lines = call("hello.greet", "--json").stdout.splitlines()
    assert msgspec.json.decode(lines[0])["seq"] == 1


def test_json_prints_the_whole_response(platform: ScriptedPlatform) -> None:
    """With --json stdout has the response and stderr is empty."""
    platform.will("POST", GREET, stream(result("x")))
    done = call("hello.greet", "--json")
    response = msgspec.json.decode(done.stdout)
    assert (response["output"], response["version"], done.stderr) == ("x", "hello.greet@v1", "")


def test_stream_prints_every_event(platform: ScriptedPlatform) -> None:
    """With --stream each event, stages too, is a line."""
    platform.will("POST", GREET, stream(event("stage", {"name": "queued", "ms": 1}), chunk(1, 1), result(None)))
    names = [msgspec.json.decode(line)["event"] for line in call("hello.greet", "--stream").stdout.splitlines()]
    assert names == ["stage", "chunk", "result"]


def test_a_function_that_raised_shows_its_traceback(platform: ScriptedPlatform) -> None:
    """The traceback is the function's, without the SDK's."""
    document = problem_document("function_raised", "ValueError: no", traceback="Traceback\n  app.py\nValueError: no\n")
    platform.will("POST", GREET, stream(event("error", document)))
    done = call("hello.greet")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[:4] == ["Traceback", "  app.py", "ValueError: no", "error: ValueError: no"]


def test_a_function_that_did_not_load_shows_its_traceback(platform: ScriptedPlatform) -> None:
    """The advice refers to the traceback, so it is printed before the error."""
    document = problem_document("load_failed", "RuntimeError: no", traceback="Traceback\n  app.py\nRuntimeError: no\n")
    platform.will("POST", GREET, stream(event("error", document)))
    assert call("hello.greet").stderr.splitlines()[:4] == [
        "Traceback", "  app.py", "RuntimeError: no", "error: RuntimeError: no",
    ]  # fmt: skip


def test_a_spawned_call_is_a_job_whose_id_is_all_of_stdout(platform: ScriptedPlatform) -> None:
    """It is stored under a key of its own; the deadline is the time in which it must start."""
    platform.will("POST", GREET, job_taken())
    done = call("hello.greet", "name=Ada", "--spawn", "--deadline", "60")

    assert (done.exit_code, done.stdout) == (0, f"{JOB}\n")
    assert f"'pilotlight job get {JOB} --wait 60' prints its answer." in done.stderr
    (request,) = platform.requests
    assert request.headers["prefer"] == "respond-async"
    assert request.headers["idempotency-key"].startswith("key_")
    assert request.call == {"input": {"name": "Ada"}, "expires_in_s": 60.0}
    assert msgspec.json.decode(call("hello.greet", "--spawn", "--json").stdout) == {"id": JOB}


def test_a_spawned_call_has_no_events(platform: ScriptedPlatform) -> None:
    """Both options together are refused before anything is stored."""
    done = call("hello.greet", "--spawn", "--stream")

    assert done.exit_code == 2
    assert "--spawn waits for no events" in done.stderr
    assert platform.requests == []
