"""`pilotlight job`: listed, shown, cancelled and driven again."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from typer.testing import CliRunner

from pilotlight.cli.main import app
from pilotlight_core.model import values
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

JOB = "call_local_1_abc"
LISTED: dict[str, Any] = {
    "id": JOB, "version": "shop.hello@v1", "state": "failed", "attempts": 3, "reason": "raised",
    "created_at": time.time() - 60, "started_at": 100.0, "ended_at": 103.0,
    "error": {"code": "function_raised", "detail": "ValueError: no", "traceback": "Traceback …"},
}  # fmt: skip


def run(*words: str, code: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, ["job", *words])
    assert done.exit_code == code, done.stderr
    return done.stdout, done.stderr


def test_lists_follow_their_pages(platform: ScriptedPlatform) -> None:
    """A list reads all pages, as a table or as JSON."""
    other = {**LISTED, "id": "call_2", "state": "queued", "reason": None, "started_at": None}
    pages = (answer({"jobs": [LISTED], "next": "7"}), answer({"jobs": [other], "next": None}))
    platform.will("GET", "/v1/jobs", *pages)
    out, _ = run("list", "--state", "failed,queued", "--function", "shop.hello")
    assert "raised" in out
    assert "3s" in out
    assert [request.query for request in platform.asked("/v1/jobs")] == [
        "state=failed,queued&function=shop.hello&limit=50",
        "state=failed,queued&function=shop.hello&limit=49&cursor=7",
    ]
    platform.will("GET", "/v1/jobs", answer({"jobs": [LISTED], "next": None}))
    assert msgspec.json.decode(run("list", "--json")[0])[0]["id"] == JOB
    platform.will("GET", "/v1/jobs", answer({"jobs": [], "next": None}))
    assert "No jobs" in run("list")[1]


def test_the_answer_of_a_job_goes_to_stdout(platform: ScriptedPlatform) -> None:
    """The rest goes to stderr; with --json all is one document."""
    done = {**LISTED, "state": "succeeded", "error": None, "output": {"a": b"\x00"}}
    packed = Answer(headers={"content-type": "application/msgpack"}, pieces=[values.encode(done)])
    platform.will("GET", f"/v1/calls/{JOB}", packed)
    out, err = run("get", JOB, "--wait", "1")
    assert msgspec.json.decode(out) == {"a": "AA=="}
    assert "succeeded" in err
    assert msgspec.json.decode(run("get", JOB, "--json")[0])["output"] == {"a": "AA=="}
    platform.will("GET", f"/v1/calls/{JOB}", answer(LISTED))
    assert "ValueError: no" in run("get", JOB)[1]


def test_a_waiting_job_shows_its_time_and_place(platform: ScriptedPlatform) -> None:
    """It shows its time, place and expected wait; a running job shows for how long it runs."""
    at = time.time()
    waits = {
        **LISTED,
        "created_at": at - 60,
        "state": "queued",
        "error": None,
        "started_at": None,
        "ended_at": None,
        "reason": None,
    }
    later = {**waits, "run_at": at + 7_300, "expires_at": at + 90_000, "position": 3, "starts_in_s": 12.4}
    platform.will("GET", "/v1/jobs", answer({"jobs": [later], "next": None}))
    assert "in 2h" in run("list")[0]
    platform.will("GET", f"/v1/calls/{JOB}", answer(later))
    told = run("get", JOB)[1]
    assert "(1m ago)" in told
    assert "not before" in told
    assert "(in 2h)" in told
    assert "place  3 before it, starts in about 12s" in told
    platform.will("GET", f"/v1/calls/{JOB}", answer({**waits, "position": 0}))
    assert "place  next" in run("get", JOB)[1]
    platform.will("GET", f"/v1/calls/{JOB}", answer({**waits, "state": "running", "started_at": at - 130}))
    assert "runs for  2m" in run("get", JOB)[1]
    platform.will("GET", f"/v1/calls/{JOB}", answer(LISTED))
    assert ", after 3s" in run("get", JOB)[1]


def test_a_job_is_cancelled(platform: ScriptedPlatform) -> None:
    """The command prints whether the job was alive, and explains a plain function that goes on."""
    platform.will("DELETE", f"/v1/calls/{JOB}", answer({"id": JOB, "cancelled": True}, status=202))
    platform.will("GET", f"/v1/calls/{JOB}", answer({**LISTED, "state": "queued"}))
    assert "is cancelled.\n" in run("cancel", JOB)[1]
    platform.will("GET", f"/v1/calls/{JOB}", answer({**LISTED, "state": "running"}))
    assert "keeps its slot" in run("cancel", JOB)[1]
    assert msgspec.json.decode(run("cancel", JOB, "--json")[0]) == {"id": JOB, "cancelled": True}


def test_dead_jobs_are_queued_anew(platform: ScriptedPlatform) -> None:
    """They are named by their ids, or by their function, but not by both."""
    platform.will("POST", f"/v1/jobs/{JOB}/redrive", answer({**LISTED, "state": "queued"}, status=202))
    platform.will("GET", "/v1/jobs", answer({"jobs": [LISTED], "next": None}))
    assert "1 queued anew" in run("redrive", JOB)[1]
    assert msgspec.json.decode(run("redrive", "--function", "shop.hello", "--json")[0])[0]["id"] == JOB
    assert platform.asked("/v1/jobs")[0].query.startswith("state=failed,expired&function=shop.hello")
    run("redrive", code=2)
