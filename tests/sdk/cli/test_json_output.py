"""`--json`, of every command: its output parses, whatever becomes of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.command_line import run_command
from tests.sdk.cli.every_command import FAILS, HERE, STREAMS, WORDS, commands, make_folder, script
from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import ScriptedPlatform, chunk, event, problem, problem_document, result, stream
from tests.variants import with_variants

CALLED = "/v1/functions/hello.greet/calls"


@pytest.fixture
def folder(platform: ScriptedPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script(platform)
    monkeypatch.setattr("pilotlight.cli.commands.run.token", lambda _length: "abc123")
    place = make_folder(tmp_path / "code")
    monkeypatch.chdir(place)
    return place


def run(*words: str) -> tuple[int, str]:
    """A command with --json in a process of its own, since some of them start others: its exit code and stdout."""
    done = run_command((*words, "--json"), env=os.environ, cwd=Path.cwd())
    return done.returncode, done.stdout


def lines_of(text: str) -> list[Any]:
    return [msgspec.json.decode(line) for line in text.splitlines()]


def test_no_command_is_left_out() -> None:
    """A new one gets words here, and with them the tests below."""
    assert set(commands()) == set(WORDS)


@pytest.mark.parametrize(
    "name",
    [name for name in WORDS if name not in (*FAILS, "ledger verify", "ca issue", "plan", "record", "simulate")],
)
def test_the_output_of_every_command_parses(folder: Path, name: str) -> None:
    """As one document; of streams line by line."""
    done = invoke(*WORDS[name].split(), "--json")

    assert done.exit_code == 0, done.stderr
    if name in (*STREAMS, "call", "run"):
        assert all(isinstance(line, dict) for line in lines_of(done.stdout))
        assert len(done.stdout.splitlines()) == 2
    else:
        assert msgspec.json.decode(done.stdout) is not None


@pytest.mark.parametrize("name", [name for name in WORDS if name not in HERE])
def test_the_error_of_every_command_parses(folder: Path, platform: ScriptedPlatform, name: str) -> None:
    """stdout has one line with the problem, stderr says the same for people, and the exit code is 1."""
    platform.fail_with(problem("internal", "it went wrong"))
    done = invoke(*WORDS[name].split(), "--json")

    (line,) = lines_of(done.stdout)
    assert done.exit_code == 1
    assert line["error"]["code"] == "internal"
    assert line["error"]["detail"] == "it went wrong"
    assert {"status", "title", "advice", "request_id"} <= set(line["error"])
    assert "error: it went wrong" in done.stderr


@pytest.mark.parametrize("name", with_variants(["plan", *FAILS], 4))
def test_commands_that_are_programs_of_their_own_do_too(folder: Path, name: str) -> None:
    """They end with the error as JSON, or with their own document."""
    code, out = run(*WORDS[name].split())
    answer = msgspec.json.decode(out)

    if name == "plan":
        assert (code, answer["gpus"]) == (0, {"A100-80GB": 4})
        (folder / "demand.csv").write_text("function,rps\nclassify,many\n")
        code, out = run(*WORDS[name].split())
        answer = msgspec.json.decode(out)
        assert "'many' is not a number" in answer["error"]["detail"]
    assert code != 0


def test_a_simulation_is_one_document(folder: Path) -> None:
    """Of a program of its own, which succeeds."""
    code, out = run(*WORDS["simulate"].split())
    assert (code, list(msgspec.json.decode(out)["simulations"])) == (0, ["simulated"])


@pytest.mark.parametrize(
    "words", [["nonsense"], ["call"], ["app", "x"], ["quota", "set", "acme"], ["call", "hello.greet", "Ada"]]
)
def test_an_error_in_the_words_parses(words: list[str]) -> None:
    """Exit code 2, and a code of its own."""
    done = invoke(*words, "--json")

    assert done.exit_code == 2
    (line,) = lines_of(done.stdout)
    assert line["error"]["code"] == "usage"
    assert line["error"]["detail"]
    assert "Error: " in done.stderr


def test_a_stream_is_a_line_for_each_part_to_its_end(folder: Path, platform: ScriptedPlatform) -> None:
    """Chunks, and the result or the error."""
    platform.will("POST", CALLED, stream(chunk(1, "a"), chunk(2, "b"), result(None)))
    *chunks, last = lines_of(invoke("call", "hello.greet", "--json").stdout)
    assert [one["value"] for one in chunks] == ["a", "b"]
    assert last["usage"]["ns"] == 5

    document = problem_document("function_raised", "ValueError: no", traceback="Traceback\n")
    platform.will("POST", CALLED, stream(chunk(1, "a"), event("error", document)))
    for flags in (["--json"], ["--stream", "--json"]):
        *_, last = lines_of(invoke("call", "hello.greet", *flags).stdout)
        assert (last["error"]["code"], last["error"]["traceback"]) == ("function_raised", "Traceback\n")


def test_an_answer_that_is_no_stream_is_a_document(folder: Path, platform: ScriptedPlatform) -> None:
    """Indented, as those of other commands."""
    platform.will("POST", CALLED, stream(result("hi")))
    out = invoke("call", "hello.greet", "--json").stdout

    assert msgspec.json.decode(out)["output"] == "hi"
    assert out.startswith("{\n")
