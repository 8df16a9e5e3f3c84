"""Durable calls from Python: stored once, asked for until they have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from pilotlight import FunctionCall, FunctionRaised, gpu_function
from pilotlight.client.resources.jobs import LEAST_TURN_S, pause_after
from pilotlight.definitions.errors import Cancelled, DeadlineExceeded, PilotlightError
from tests.sdk.scripted import JOB, Answer, ScriptedPlatform, answer, job_status, job_taken, problem

GREET = "/v1/functions/jobs.greet/calls"


@gpu_function(app="jobs")
def greet(name: Any) -> Any:
    return name


@gpu_function(app="jobs")
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


def test_a_spawned_call_is_stored_once_however_often_it_is_sent(platform: ScriptedPlatform) -> None:
    """All attempts of a call have one key, and the next call has another."""
    platform.will("POST", GREET, job_taken(cut=True), problem("no_capacity", headers={"retry-after": "0"}), job_taken())
    assert greet.spawn("Ada").id == JOB
    greet.spawn("Ada")

    asked = platform.asked(GREET)
    keys = [request.headers["idempotency-key"] for request in asked]
    assert len(asked) == 4
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]
    assert {request.headers["prefer"] for request in asked} == {"respond-async"}
    assert asked[0].call == {"input": {"name": "Ada"}}


def test_options_of_a_spawned_call_are_sent(platform: ScriptedPlatform) -> None:
    """A time, a deadline, a key and an id have their fields and headers."""
    platform.will("POST", GREET, job_taken())
    greet.options(run_at=2e9, deadline=60.0, idempotency_key="order-7").spawn("Ada")
    greet.options(id="cid_12345678").spawn("Ada")

    first, second = platform.asked(GREET)
    assert first.call == {"input": {"name": "Ada"}, "run_at": 2e9, "expires_in_s": 60.0}
    assert first.headers["idempotency-key"] == "order-7"
    assert second.call == {"input": {"name": "Ada"}, "id": "cid_12345678"}
    assert "idempotency-key" not in second.headers


def test_the_answer_of_a_job_is_awaited(platform: ScriptedPlatform) -> None:
    """The answer keeps its type, and a broken connection is followed by another request."""
    sent = numpy.arange(3)
    path = f"/v1/calls/{JOB}"
    platform.will(
        "GET", path, job_status("queued"), Answer(cut=True), job_status("running"), job_status("succeeded", output=sent)
    )  # fmt: skip
    assert (FunctionCall.from_id(JOB).get() == sent).all()
    assert {request.headers.get("prefer") for request in platform.asked(path)} == {"wait=25"}


@pytest.mark.parametrize(
    ("answered_s", "left_s", "pause_s"),
    [(0.0, 25.0, LEAST_TURN_S), (0.25, 25.0, 0.75), (25.0, 25.0, 0.0), (0.0, 0.5, 0.5), (0.0, 0.0, 0.0)],
)
def test_a_gateway_that_answers_at_once_is_not_asked_without_a_pause(
    answered_s: float, left_s: float, pause_s: float
) -> None:
    """As one does that is about to end; nobody pauses beyond their own time."""
    assert pause_after(answered_s, left_s) == pause_s


RAISED = {"code": "function_raised", "detail": "ValueError: no"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            job_status("failed", error={"code": "function_raised", "detail": "ValueError: no", "traceback": "T"}),
            ValueError,
        ),
        (job_status("failed", error={"code": "function_raised", "detail": "ValueError: no"}), FunctionRaised),
        (job_status("cancelled"), Cancelled),
        (job_status("expired"), DeadlineExceeded),
        (problem("unknown_call"), PilotlightError),
    ],
)
def test_the_failure_of_a_job_is_raised(platform: ScriptedPlatform, answer: Answer, error: type[Exception]) -> None:
    """The exception is that of `.remote()`."""
    platform.will("GET", f"/v1/calls/{JOB}", answer)
    with pytest.raises(error):
        FunctionCall.from_id(JOB).get()


def test_an_id_with_slashes_stays_one_part_of_the_path(platform: ScriptedPlatform) -> None:
    """No other resource is reached by an id of a foreign source."""
    asked = FunctionCall.from_id("../webhooks/wh_1")
    platform.will("DELETE", "/v1/webhooks/wh_1", answer({"cancelled": True}))
    platform.will("GET", "/v1/webhooks/wh_1", job_status("succeeded"))
    for question in (asked.cancel, asked.status, asked.get):
        with pytest.raises(PilotlightError):
            question()
    assert not platform.asked("/v1/webhooks/wh_1")
