"""A FunctionCall: waiting for what it returned, alone or among others, its state, and its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotlight import Client, FunctionCall, gpu_function
from pilotlight.definitions.errors import DeadlineExceeded, UnknownCall
from tests.sdk.scripted import JOB, ScriptedPlatform, answer, job_status, job_taken, problem

GREET = "/v1/functions/stored.greet/calls"


@gpu_function(app="stored")
def greet(name: Any) -> Any:
    return name


def test_a_wait_may_end_before_the_job(platform: ScriptedPlatform) -> None:
    """The job goes on, and the error says so."""
    platform.will("GET", f"/v1/calls/{JOB}", job_status("running"))
    with pytest.raises(DeadlineExceeded, match=r"it goes on\. Wait for it again\."):
        FunctionCall.from_id(JOB).get(timeout=0)


def test_many_are_waited_for_at_once(platform: ScriptedPlatform) -> None:
    """Answers come in the order of the calls."""
    platform.will("GET", "/v1/calls/a", job_status("succeeded", "a", output=1))
    platform.will("GET", "/v1/calls/b", job_status("running", "b"), job_status("succeeded", "b", output=2))
    b, a = FunctionCall.from_id("b"), FunctionCall.from_id("a")
    assert FunctionCall.gather(b, a, a) == [2, 1, 1]
    assert FunctionCall.gather() == []


def test_a_failure_among_many_is_raised_or_stands_in_its_place(platform: ScriptedPlatform) -> None:
    """The caller chooses by `return_exceptions`."""
    failed = job_status("failed", "b", error={"code": "function_raised", "detail": "ValueError: no"})
    platform.will("GET", "/v1/calls/a", job_status("succeeded", "a", output=1))
    platform.will("GET", "/v1/calls/b", failed)
    a, b = FunctionCall.from_id("a"), FunctionCall.from_id("b")
    with pytest.raises(ValueError, match="no"):
        FunctionCall.gather(a, b)
    kept = FunctionCall.gather(a, b, return_exceptions=True)
    assert kept[0] == 1
    assert isinstance(kept[1], ValueError)


def test_a_list_of_calls_is_refused(platform: ScriptedPlatform) -> None:
    """The error has the right form, and nothing is sent."""
    with pytest.raises(TypeError, match=r"not a list: gather\(\*calls\)"):
        FunctionCall.gather([FunctionCall.from_id("a")])  # type: ignore[arg-type]
    assert platform.requests == []


def test_an_unknown_call_is_an_error(platform: ScriptedPlatform) -> None:
    """Each method raises it."""
    for method in ("GET", "DELETE"):
        platform.will(method, f"/v1/calls/{JOB}", problem("unknown_call"))
    call = FunctionCall.from_id(JOB)
    for ask in (call.get, call.status, call.cancel):
        with pytest.raises(UnknownCall):
            ask()
    assert repr(call) == f"FunctionCall({JOB!r})"


def test_a_call_may_be_of_another_client(platform: ScriptedPlatform) -> None:
    """The request has the key of that client."""
    platform.will("GET", f"/v1/calls/{JOB}", job_status("succeeded", output=1))
    with Client(url=platform.url, api_key="another") as client:
        assert FunctionCall.from_id(JOB, client=client).get() == 1
    assert platform.requests[0].headers["authorization"] == "Bearer another"


def test_a_call_has_a_status_and_is_cancelled(platform: ScriptedPlatform) -> None:
    """Cancelling returns whether the call was alive."""
    platform.will("DELETE", f"/v1/calls/{JOB}", answer({"id": JOB, "cancelled": True}, status=202))
    platform.will("GET", f"/v1/calls/{JOB}", job_status("queued", position=3))
    call = FunctionCall.from_id(JOB)
    assert call.cancel()
    assert call.status()["position"] == 3


def test_a_call_is_awaited_in_an_event_loop(platform: ScriptedPlatform) -> None:
    """Each method has an `.aio`."""
    platform.will("POST", GREET, job_taken())
    platform.will("GET", f"/v1/calls/{JOB}", job_status("succeeded", output="Ada"))

    async def main() -> Any:
        return await (await greet.spawn.aio("Ada")).get.aio()

    assert asyncio.run(main()) == "Ada"
