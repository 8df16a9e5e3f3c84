"""Commands about batches: what they send, and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

LINES = b'{"input": {"name": "Ada"}}\n{"input": {"name": "Bob"}}\n'
NONE = {"succeeded": 0, "failed": 0, "cancelled": 0, "expired": 0}
BATCH: dict[str, Any] = {
    "id": "batch_1", "state": "running", "function": "hello.greet@v1", "method": None, "label": "night", "total": 2,
    "submitted": 2, "counts": NONE, "created_at": 0.0, "expires_at": 4e9, "ended_at": None, "reason": None,
}  # fmt: skip
DONE = BATCH | {"state": "completed", "counts": NONE | {"succeeded": 2}, "ended_at": 1.0}
MIXED = DONE | {"counts": NONE | {"succeeded": 1, "failed": 1}}


def run(*words: str, stdin: bytes | None = None) -> str:
    done = CliRunner().invoke(app, ["batch", *words], input=stdin)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "inputs.jsonl"
    path.write_bytes(LINES)
    return str(path)


def test_a_file_is_submitted(platform: ScriptedPlatform, file: str) -> None:
    """The lines are sent unchanged, with the options in the query, and the id is all of stdout."""
    platform.will("POST", "/v1/batches", answer(BATCH, 201))

    assert run("submit", "hello.greet", file, "--label", "night", "--expires", "6h", "--method", "go") == "batch_1\n"
    (sent,) = platform.requests
    assert sent.body == LINES
    assert dict(parse_qsl(sent.query)) == {
        "function": "hello.greet",
        "method": "go",
        "label": "night",
        "expires_in_s": "21600",
    }
    assert sent.headers["content-type"] == "application/x-ndjson"
    assert sent.headers["idempotency-key"].startswith("cli-")
    assert msgspec.json.decode(run("submit", "hello.greet", file, "--json")) == BATCH
    assert run("submit", "hello.greet", "-", stdin=LINES) == "batch_1\n"
    assert platform.requests[-1].body == LINES
    told = CliRunner().invoke(app, ["batch", "submit", "hello.greet", file]).stderr
    assert told == "2 inputs for hello.greet@v1; follow them with 'pilotlight batch status batch_1 --wait'.\n"


def test_wrong_lines_are_listed(platform: ScriptedPlatform, file: str) -> None:
    """The first ten wrong lines are printed with their ids; a single one is in the error."""
    errors = [{"line": n, "field": "name", "detail": f"name: no {n}", "custom_id": f"row-{n}"} for n in range(1, 15)]
    errors[1]["custom_id"] = None
    platform.will("POST", "/v1/batches", problem("bad_input", "line 1: name: no 1", errors=errors))
    done = CliRunner().invoke(app, ["batch", "submit", "hello.greet", file])
    assert done.exit_code == 1
    told = done.stderr.splitlines()
    assert told[:2] == ["line 1 (row-1): name: no 1", "line 2: name: no 2"]
    assert told[9] == "line 10 (row-10): name: no 10"
    assert "line 1: name: no 1" in told[10]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("42", "There is no file {}."),
        ("input.jsonl", "There is no file {}. Did you mean inputs.jsonl?"),
        ("nowhere/at/all.jsonl", "There is no file {}."),
        ("folder", "{} is a folder."),
        ("inputs.jsonl/more", "{} cannot be read: Not a directory."),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(platform: ScriptedPlatform, file: str, name: str, told: str) -> None:
    """The error names the file, the reason and the remedy, and nothing is sent."""
    path = Path(file).parent / name
    Path(file).with_name("folder").mkdir()
    done = CliRunner().invoke(app, ["batch", "submit", "hello.greet", str(path)])

    assert done.exit_code == 1
    hint = "Name a file with an input on each line, or - for stdin."
    assert done.stderr == f"error: {told.format(path)} {hint}\n"
    assert not platform.requests


def test_results_that_cannot_be_written_are_an_error(platform: ScriptedPlatform, file: str) -> None:
    """The error names the path and the remedy."""
    platform.will("GET", "/v1/batches/batch_1/results", answer({}))
    done = CliRunner().invoke(app, ["batch", "results", "batch_1", "-o", f"{file}/results.jsonl"])

    assert done.exit_code == 1
    assert done.stderr == f"error: {file}/results.jsonl cannot be written: Not a directory. Name another with -o.\n"


def test_a_wrong_line_is_an_error(platform: ScriptedPlatform, file: str) -> None:
    """The error is the platform's own text."""
    platform.will("POST", "/v1/batches", problem("bad_input", "line 3: input.name: this argument is missing"))

    done = CliRunner().invoke(app, ["batch", "submit", "hello.greet", file])

    assert done.exit_code == 1
    assert "line 3: input.name" in done.stderr


def test_batches_are_listed_and_shown(platform: ScriptedPlatform) -> None:
    """Lists and status show the progress of a batch."""
    platform.will("GET", "/v1/batches", answer({"batches": [MIXED]}))
    platform.will("GET", "/v1/batches/batch_1", answer(MIXED | {"reason": "so"}))

    assert run("list").splitlines()[1].split()[:6] == ["batch_1", "hello.greet@v1", "completed", "2", "1", "2"]
    shown = run("status", "batch_1")
    assert "2 of 2: 1 succeeded, 1 failed" in shown
    assert "so" in shown
    assert msgspec.json.decode(run("list", "--json")) == [MIXED]
    assert msgspec.json.decode(run("status", "batch_1", "--json"))["id"] == "batch_1"


def test_wait_returns_at_the_end(platform: ScriptedPlatform, file: str) -> None:
    """With --wait the exit code is 0 only if every item succeeded."""
    platform.will("POST", "/v1/batches", answer(BATCH, 201))
    platform.will("GET", "/v1/batches/batch_1", answer(DONE))

    assert run("submit", "hello.greet", file, "--wait") == "batch_1\n"
    assert "2 of 2" in run("status", "batch_1", "--wait")

    platform.will("GET", "/v1/batches/batch_1", answer(MIXED))
    done = CliRunner().invoke(app, ["batch", "status", "batch_1", "--wait"])
    assert done.exit_code == 1
    assert "1 of 2 succeeded, 1 failed" in done.stderr


def test_results_go_to_stdout_or_a_file(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """The bytes are those that the platform sends."""
    lines = b'{"index":0}\n{"index":1}\n'
    platform.will("GET", "/v1/batches/batch_1/results", Answer(pieces=[lines]))
    path = tmp_path / "results.jsonl"

    assert run("results", "batch_1", "--state", "failed") == lines.decode()
    assert platform.requests[0].query == "state=failed"
    assert run("results", "batch_1", "-o", str(path)) == ""
    assert path.read_bytes() == lines


def test_a_batch_is_cancelled_and_resumed(platform: ScriptedPlatform) -> None:
    """Both commands print the new state of the batch."""
    platform.will("POST", "/v1/batches/batch_1/cancel", answer(BATCH | {"state": "cancelling"}, 202))
    platform.will("POST", "/v1/batches/batch_1/resume", answer(BATCH, 202))

    assert run("cancel", "batch_1") == "batch_1 is cancelling.\n"
    assert run("resume", "batch_1") == "batch_1 is running.\n"
    for verb in ("cancel", "resume"):
        assert msgspec.json.decode(run(verb, "batch_1", "--json"))["id"] == "batch_1"
