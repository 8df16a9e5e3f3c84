"""Durable calls from Python: stored once, asked for until they have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from pilotlight import FunctionCall, FunctionRaised, Misuse, OptionError, gpu_function
from pilotlight.definitions.errors import Cancelled, DeadlineExceeded, PilotlightError
from pilotlight_core.model import values
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

GREET = "/v1/functions/jobs.greet/calls"
JOB = "call_local_1_abc"


@gpu_function(app="jobs")
def greet(name: Any) -> Any:
    return name


@gpu_function(app="jobs")
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


def taken(name: str = JOB, *, cut: bool = False) -> Answer:
    given = answer({"id": name, "state": "queued"}, status=202)
    return Answer(status=202, headers=given.headers, pieces=given.pieces, cut=cut)


def told(state: str, name: str = JOB, **more: Any) -> Answer:
    """How a job is, as msgpack."""
    body = values.encode({"id": name, "state": state, **more})
    return Answer(headers={"content-type": "application/msgpack"}, pieces=[body])


def test_a_spawned_call_is_stored_once_however_often_it_is_sent(platform: ScriptedPlatform) -> None:
    """A broken connection and a busy platform: the same key each time, and another for the next call."""
    platform.will("POST", GREET, taken(cut=True), problem("no_capacity", headers={"retry-after": "0"}), taken())
    assert greet.spawn("Ada").id == JOB
    greet.spawn("Ada")

    asked = platform.asked(GREET)
    keys = [request.headers["idempotency-key"] for request in asked]
    assert len(asked) == 4
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]
    assert {request.headers["prefer"] for request in asked} == {"respond-async"}
    assert asked[0].call == {"input": {"name": "Ada"}}


def test_its_options_travel(platform: ScriptedPlatform) -> None:
    """Its time, its patience, a key or an id of one's own."""
    platform.will("POST", GREET, taken())
    greet.options(run_at=2e9, deadline=60.0, idempotency_key="order-7").spawn("Ada")
    greet.options(id="cid_12345678").spawn("Ada")

    first, second = platform.asked(GREET)
    assert first.call == {"input": {"name": "Ada"}, "run_at": 2e9, "expires_in_s": 60.0}
    assert first.headers["idempotency-key"] == "order-7"
    assert second.call == {"input": {"name": "Ada"}, "id": "cid_12345678"}
    assert "idempotency-key" not in second.headers


def test_its_answer_is_waited_for(platform: ScriptedPlatform) -> None:
    """With its type; over questions that break off; by anybody who has the id."""
    sent = numpy.arange(3)
    path = f"/v1/calls/{JOB}"
    platform.will(
        "GET", path, told("queued"), Answer(cut=True), told("running"), told("succeeded", output=sent)
    )  # fmt: skip
    assert (FunctionCall.from_id(JOB).get() == sent).all()
    assert {request.headers.get("prefer") for request in platform.asked(path)} == {"wait=25"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (told("failed", error={"code": "function_raised", "detail": "ValueError: no", "traceback": "T"}), ValueError),
        (told("failed", error={"code": "function_raised", "detail": "ValueError: no"}), FunctionRaised),
        (told("cancelled"), Cancelled),
        (told("expired"), DeadlineExceeded),
        (problem("unknown_call"), PilotlightError),
    ],
)
def test_how_it_failed_is_raised(platform: ScriptedPlatform, answer: Answer, error: type[Exception]) -> None:
    """As `.remote()` would have."""
    platform.will("GET", f"/v1/calls/{JOB}", answer)
    with pytest.raises(error):
        FunctionCall.from_id(JOB).get()


def test_a_wait_may_end_before_the_job(platform: ScriptedPlatform) -> None:
    """The job goes on."""
    platform.will("GET", f"/v1/calls/{JOB}", told("running"))
    with pytest.raises(DeadlineExceeded, match=r"it goes on\. Wait for it again\."):
        FunctionCall.from_id(JOB).get(timeout=0)


def test_cancel_and_status(platform: ScriptedPlatform) -> None:
    """Whether it was alive; everything that is known."""
    platform.will("DELETE", f"/v1/calls/{JOB}", answer({"id": JOB, "cancelled": True}, status=202))
    platform.will("GET", f"/v1/calls/{JOB}", told("queued", position=3))
    call = FunctionCall.from_id(JOB)
    assert call.cancel()
    assert call.status()["position"] == 3


def test_an_id_is_no_way_to_something_else(platform: ScriptedPlatform) -> None:
    """One that came from elsewhere, and names a path: nobody is asked for that."""
    asked = FunctionCall.from_id("../webhooks/wh_1")
    platform.will("DELETE", "/v1/webhooks/wh_1", answer({"cancelled": True}))
    platform.will("GET", "/v1/webhooks/wh_1", told("succeeded"))
    for question in (asked.cancel, asked.status, asked.get):
        with pytest.raises(PilotlightError):
            question()
    assert not platform.asked("/v1/webhooks/wh_1")


def test_many_are_waited_for_at_once(platform: ScriptedPlatform) -> None:
    """In order; a failure is raised, or stands in its place."""
    platform.will("GET", "/v1/calls/a", told("succeeded", "a", output=1))
    platform.will(
        "GET", "/v1/calls/b", told("failed", "b", error={"code": "function_raised", "detail": "ValueError: no"})
    )
    a, b = FunctionCall.from_id("a"), FunctionCall.from_id("b")
    assert FunctionCall.gather() == []
    with pytest.raises(TypeError, match=r"not a list: gather\(\*calls\)"):
        FunctionCall.gather([a, b])  # type: ignore[arg-type]
    assert FunctionCall.gather(a, a) == [1, 1]
    kept = FunctionCall.gather(a, b, return_exceptions=True)
    assert (kept[0], isinstance(kept[1], ValueError)) == (1, True)
    with pytest.raises(ValueError, match="no"):
        FunctionCall.gather(a, b)


def test_in_an_event_loop(platform: ScriptedPlatform) -> None:
    """Each has its `.aio`."""
    platform.will("POST", GREET, taken())
    platform.will("GET", f"/v1/calls/{JOB}", told("succeeded", output="Ada"))

    async def main() -> Any:
        return await (await greet.spawn.aio("Ada")).get.aio()

    assert asyncio.run(main()) == "Ada"


def test_a_generators_call_is_stored_too(platform: ScriptedPlatform) -> None:
    """Its answer is the list of what it yields; stages are told to nobody."""
    platform.will("POST", "/v1/functions/jobs.count/calls", taken())
    assert count.spawn(3).id == JOB
    with pytest.raises(OptionError, match="on_stage"):
        greet.options(on_stage=print).spawn("Ada")
    with pytest.raises(Misuse):
        greet.options(id="x")
