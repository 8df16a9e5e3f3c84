"""The inputs of a map as durable jobs: each is one job, however it is sent, and ends when its map is left."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pilotlight import FunctionRaised, Misuse, OptionError, gpu_function
from pilotlight.client import durable_map
from pilotlight.client.concurrent_map import WINDOW
from pilotlight.definitions.errors import Cancelled, PilotlightError, TooMuch
from pilotlight_core.model import values
from tests.sdk.scripted import JOB, Answer, Request, ScriptedPlatform, answer, job_status, problem
from tests.waiting import until

DOUBLE = "/v1/functions/maps.double/calls"
MSGPACK = {"content-type": "application/msgpack"}


@gpu_function(app="maps")
def double(number: Any, plus: int = 0) -> Any:
    return 2 * number + plus


@gpu_function(app="maps")
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


def done(output: Any, **how: Any) -> Answer:
    """The answer of a submission whose job ended while it waited."""
    return Answer(headers=MSGPACK, pieces=[values.encode({"id": JOB, "output": output})], **how)


class Store:
    """Jobs by the id that the client gave them: a repeated submission meets the first."""

    def __init__(self, platform: ScriptedPlatform) -> None:
        self.inputs: dict[str, Any] = {}
        self.sent: Counter[str] = Counter()
        self.cancelled: set[str] = set()
        platform.does("POST", DOUBLE, self.submit)
        platform.does("DELETE", "/v1/calls/", self.cancel)

    def submit(self, request: Request) -> Answer:
        call = request.call
        self.sent[call["id"]] += 1
        self.inputs[call["id"]] = call["input"]
        return done(2 * call["input"]["number"] + call["input"].get("plus", 0))

    def cancel(self, request: Request) -> Answer:
        name = request.path.rpartition("/")[2]
        if name not in self.inputs:
            return problem("unknown_call")
        self.cancelled.add(name)
        return answer({"id": name, "cancelled": True}, status=202)


@pytest.fixture
def store(platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(durable_map, "GOODBYE_S", 60.0)  # on a busy machine hundreds of them take longer than one waits
    return Store(platform)


def test_inputs_are_jobs_in_order(platform: ScriptedPlatform, store: Store) -> None:
    """Hundreds of inputs are submitted once each, with an id each, and one request also awaits the end."""
    assert list(double.map(range(300))) == [2 * number for number in range(300)]
    assert sorted(double.starmap([(1, 1), (2, 2)], order_outputs=False)) == [3, 6]
    assert list(double.map([1], kwargs={"plus": 5})) == [7]

    asked = platform.asked(DOUBLE)
    assert len(asked) == len(store.inputs) == 303
    assert {request.headers["prefer"] for request in asked} == {"respond-async, wait=25"}
    assert set(store.sent.values()) == {1}
    assert not store.cancelled


async def test_a_map_is_an_async_iterator_too(store: Store) -> None:
    """`.aio` submits the same jobs."""
    assert [value async for value in double.map.aio(range(3))] == [0, 2, 4]
    assert [value async for value in double.starmap.aio([(1, 1)])] == [3]
    assert len(store.inputs) == 4


def test_an_unsure_submission_is_repeated_as_the_same_job(platform: ScriptedPlatform) -> None:
    """It follows a broken connection, a draining gateway and a busy platform."""
    platform.will(
        "POST", DOUBLE, Answer(cut=True), problem("draining", headers={"retry-after": "0"}),
        problem("rate_limited", headers={"retry-after": "0"}), done(8),
    )  # fmt: skip
    assert list(double.map([4])) == [8]
    asked = platform.asked(DOUBLE)
    assert len(asked) == 4
    assert len({request.call["id"] for request in asked}) == 1


def test_a_long_job_is_polled(platform: ScriptedPlatform) -> None:
    """A request that breaks off is repeated."""
    platform.will("POST", DOUBLE, answer({"id": JOB, "state": "queued"}, status=202))
    platform.will(
        "GET",
        f"/v1/calls/{JOB}",
        job_status("queued"),
        Answer(cut=True),
        job_status("running"),
        job_status("succeeded", output=3),
    )
    assert list(double.map([1])) == [3]


RAISED = problem("function_raised", "ValueError: no", traceback="Traceback: there", state="failed")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (RAISED, ValueError),
        (problem("no_capacity", "none", state="failed"), PilotlightError),
        (problem("cancelled", state="cancelled"), Cancelled),
        (problem("bad_input"), PilotlightError),
    ],
)
def test_a_failure_is_raised_at_once(platform: ScriptedPlatform, answer: Answer, error: type[Exception]) -> None:
    """A job that has ended is not submitted again, whatever the code."""
    platform.will("POST", DOUBLE, answer)
    with pytest.raises(error):
        list(double.map([1]))
    assert len(platform.asked(DOUBLE)) == 1


def test_exceptions_may_stand_in_place_of_answers(platform: ScriptedPlatform) -> None:
    """They have the remote traceback."""
    platform.does("POST", DOUBLE, lambda request: RAISED if request.call["input"]["number"] == 1 else done(0))
    answers = list(double.map(range(3), return_exceptions=True))
    assert [type(one).__mro__[2] if isinstance(one, Exception) else one for one in answers] == [0, FunctionRaised, 0]
    assert isinstance(answers[1], ValueError)
    assert "Traceback: there" in "".join(answers[1].__notes__)


def test_leaving_cancels_jobs_in_flight(platform: ScriptedPlatform, store: Store) -> None:
    """Jobs that ended are left alone, and no more inputs are read than fit."""

    def submit(request: Request) -> Answer:
        given, number = store.submit(request), request.call["input"]["number"]
        if number % 2:
            return answer({"id": request.call["id"], "state": "queued"}, status=202)
        return Answer(hold=True) if number else given

    platform.does("POST", DOUBLE, submit)
    platform.does("GET", "/v1/calls/", lambda _: Answer(hold=True))
    read = itertools.count()
    answers = double.map(next(read) for _ in itertools.count())
    assert next(answers) == 0
    asyncio.run(until(lambda: len(store.inputs) > WINDOW))
    ended = {name for name, given in store.inputs.items() if given["number"] == 0}
    answers.close()  # type: ignore[attr-defined]

    asyncio.run(until(lambda: store.cancelled == store.inputs.keys() - ended))
    assert next(read) < 4 * WINDOW


def test_the_first_failure_cancels_the_others(platform: ScriptedPlatform, store: Store) -> None:
    """The failure is raised to the caller."""

    def submit(request: Request) -> Answer:
        given = store.submit(request)
        if request.call["input"]["number"] == 2:
            return RAISED
        given.hold, given.pieces = True, ()
        return given

    platform.does("POST", DOUBLE, submit)
    with pytest.raises(ValueError, match="no"):
        list(double.map(range(20), order_outputs=False))
    waiting = {name for name, given in store.inputs.items() if given["number"] != 2}
    asyncio.run(until(lambda: store.cancelled == waiting))


def test_a_job_that_is_not_known_yet_is_cancelled_later(platform: ScriptedPlatform, store: Store) -> None:
    """Its submission may still be in flight."""
    tries = itertools.count()

    def cancel(request: Request) -> Answer:
        return problem("unknown_call") if next(tries) < 2 else store.cancel(request)

    platform.does("DELETE", "/v1/calls/", cancel)
    platform.does("POST", DOUBLE, lambda request: (store.submit(request), Answer(hold=True))[1])

    async def main() -> None:
        answers = double.map.aio([1])
        task = asyncio.ensure_future(anext(answers))
        await until(lambda: bool(store.inputs))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: bool(store.cancelled))

    asyncio.run(main())
    assert len(store.cancelled) == 1


def test_a_wait_that_is_too_long_is_an_error(platform: ScriptedPlatform) -> None:
    """A map does not wait until tomorrow."""
    platform.will("POST", DOUBLE, problem("rate_limited", headers={"retry-after": "86400"}))
    with pytest.raises(TooMuch):
        list(double.map([1]))
    assert len(platform.asked(DOUBLE)) == 1


def test_options_of_a_map_are_sent(platform: ScriptedPlatform, store: Store) -> None:
    """Times and deadlines are sent; options that name one call are refused."""
    assert list(double.options(run_at=2e9, deadline=60.0).map([1])) == [2]
    (asked,) = platform.asked(DOUBLE)
    assert (asked.call["run_at"], asked.call["expires_in_s"], asked.call["keep_s"]) == (2e9, 60.0, 3600.0)
    assert list(double.options(idempotency_key="auto").map([1])) == [2]
    with pytest.raises(Misuse, match="of its own"):
        double.options(idempotency_key="order-7").map([1])
    with pytest.raises(OptionError, match="durable=False"):
        double.options(on_stage=print).map([1])
    with pytest.raises(OptionError, match="generator"):
        count.map([1])
    assert len(store.inputs) == 2
