"""Live calls: arguments in requests; answers, chunks, stages and errors in event streams."""

from __future__ import annotations

import asyncio
import datetime
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import pilotlight
from pilotlight import Function, gpu_function
from pilotlight.client.resources.calls import CallsClient
from pilotlight.client.transport.config import ClientConfig
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.scripted import KEY, ScriptedPlatform, answer, chunk, event, problem, problem_document, result, stream

GREET = "/v1/functions/hello.greet/calls"


@gpu_function(app="hello")
def greet(name: str, times: int = 1) -> str:
    return f"hello {name}" * times


@gpu_function(app="hello", idempotent=True)
def again(name: str) -> str:
    return name


@gpu_function(app="hello")
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


@gpu_function(app="hello")
async def later(values: Any) -> Any:
    return values


@gpu_function(app="hello")
def day() -> datetime.date:
    return datetime.date(2026, 1, 31)


@gpu_function(app="hello")
def days() -> Iterator[datetime.date]:
    yield datetime.date(2026, 1, 31)


@gpu_function(app="hello")
class Model:
    @pilotlight.method()
    def predict(self, text: str) -> str:
        return text


def test_a_call_sends_its_arguments_by_name_and_gets_the_answer(platform: ScriptedPlatform) -> None:
    """The signature names positional arguments; the key and the accepted type are headers."""
    platform.will("POST", GREET, stream(event("stage", {"name": "queued", "ms": 0.1}), result("hi Ada")))

    assert greet.remote("Ada", times=2) == "hi Ada"
    (request,) = platform.asked(GREET)
    assert request.call == {"input": {"name": "Ada", "times": 2}}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (request.headers["accept"], request.query) == ("text/event-stream", "values=msgpack")


def test_a_method_is_named_beside_its_class(platform: ScriptedPlatform) -> None:
    """The class is the function, and the method a field of the call."""
    platform.will("POST", "/v1/functions/hello.Model/calls", stream(result("ok")))

    assert Model().predict.remote("x") == "ok"
    assert platform.requests[0].call == {"input": {"text": "x"}, "method": "predict"}


def test_arrays_and_bytes_keep_their_type(platform: ScriptedPlatform) -> None:
    """Neither requests nor answers pass through JSON."""
    platform.does(
        "POST", "/v1/functions/hello.later/calls", lambda request: stream(result(request.call["input"]["values"]))
    )

    sent = numpy.arange(6, dtype="float32").reshape(2, 3)
    back = later.remote(sent)
    assert back.dtype == sent.dtype
    assert (back == sent).all()
    assert later.remote(b"\x00\xff") == b"\x00\xff"


def test_answers_are_what_the_hint_says(platform: ScriptedPlatform) -> None:
    """A date is a string on the wire, and a date again here; chunks alike."""
    platform.will("POST", "/v1/functions/hello.days/calls", stream(chunk(1, "2026-01-31"), result(None)))
    platform.will("POST", "/v1/functions/hello.day/calls", stream(result("2026-01-31")))

    assert list(days.remote_gen()) == [datetime.date(2026, 1, 31)]
    assert day.remote() == datetime.date(2026, 1, 31)


def test_arguments_that_do_not_fit_are_refused(platform: ScriptedPlatform) -> None:
    """The error is that of a local call, and nothing is sent."""
    with pytest.raises(TypeError, match="missing a required argument: 'name'"):
        greet.remote()  # type: ignore[call-arg]
    with pytest.raises(pilotlight.BadInput, match="a object cannot travel"):
        greet.remote(object())  # type: ignore[arg-type]
    assert platform.requests == []


def test_an_exception_of_the_function_keeps_its_type(platform: ScriptedPlatform) -> None:
    """`except ValueError` catches it, and the remote traceback is attached."""
    trace = 'Traceback (most recent call last):\n  File "app.py", line 3, in greet\nValueError: too\nlong\n'
    platform.will(
        "POST",
        GREET,
        stream(event("error", problem_document("function_raised", "ValueError: too\nlong", traceback=trace))),
    )

    with pytest.raises(ValueError, match="too\nlong") as caught:
        greet.remote("Ada")
    assert isinstance(caught.value, pilotlight.FunctionRaised)
    assert str(caught.value) == "too\nlong"
    assert caught.value.remote_traceback == trace
    assert "line 3, in greet" in caught.value.__notes__[0]
    assert len(platform.requests) == 1


def test_a_platform_error_is_of_the_tree(platform: ScriptedPlatform) -> None:
    """It has the field of the problem document."""
    platform.will("POST", GREET, problem("bad_input", "input.name: expected a string", field="input.name"))

    with pytest.raises(pilotlight.BadInput, match=r"input\.name") as caught:
        greet.remote(3)  # type: ignore[arg-type]
    assert caught.value.more["field"] == "input.name"


def test_a_refusal_is_waited_out(platform: ScriptedPlatform) -> None:
    """Retry-After holds before the stream begins and in it."""
    platform.will(
        "POST",
        GREET,
        problem("queue_full", headers={"retry-after": "0"}),
        stream(event("error", problem_document("no_capacity", retry_after=0.01))),
        stream(result("in the end")),
    )

    assert greet.remote("Ada") == "in the end"
    assert len(platform.asked(GREET)) == 3


def test_what_should_not_be_retried_is_not(platform: ScriptedPlatform) -> None:
    """The header `x-should-retry: false` ends the attempts, whatever the status."""
    platform.will("POST", GREET, problem("rate_limited", headers={"x-should-retry": "false", "retry-after": "0"}))

    with pytest.raises(pilotlight.TooMuch):
        greet.remote("Ada")
    assert len(platform.asked(GREET)) == 1


def test_a_deadline_travels_and_bounds_the_retries(platform: ScriptedPlatform) -> None:
    """A wait that would outlast the deadline does not begin."""
    platform.will("POST", GREET, problem("queue_full", headers={"retry-after": "30"}))

    with pytest.raises(pilotlight.TooMuch):
        greet.options(deadline=5).remote("Ada")
    assert 4_000 < platform.requests[0].call["deadline_ms"] <= 5_000


def test_only_an_idempotent_call_is_repeated_after_a_lost_answer(platform: ScriptedPlatform) -> None:
    """The first call may have run."""
    for name in ("greet", "again"):
        platform.will("POST", f"/v1/functions/hello.{name}/calls", stream(cut=True), stream(result("second")))

    with pytest.raises(pilotlight.UnknownCall, match="may have been carried out"):
        greet.remote("Ada")
    assert again.remote("Ada") == "second"


def test_an_answer_without_an_end_is_lost(platform: ScriptedPlatform) -> None:
    """A stream that ends before its result is no success."""
    platform.will("POST", GREET, stream(event("stage", {"name": "queued"})))

    with pytest.raises(pilotlight.UnknownCall, match="broke off"):
        greet.remote("Ada")


def test_stages_are_reported(platform: ScriptedPlatform) -> None:
    """Each is reported when it comes, with its details."""
    stages = [{"name": "queued", "ms": 0.2, "detail": {}}, {"name": "starting", "ms": 80.0, "detail": {"bind": 20.0}}]
    platform.will("POST", GREET, stream(*(event("stage", stage) for stage in stages), b": keepalive\n\n", result("x")))
    seen: list[Any] = []

    greet.options(on_stage=lambda *stage: seen.append(stage)).remote("Ada")
    assert seen == [("queued", 0.2, {}), ("starting", 80.0, {"bind": 20.0})]


def test_a_generator_gives_its_chunks(platform: ScriptedPlatform) -> None:
    """Chunks come in order, and an error between them is raised after the last one."""
    path = "/v1/functions/hello.count/calls"
    platform.will("POST", path, stream(chunk(1, 0), chunk(2, None), result(None)))
    assert list(count.remote_gen(2)) == [0, None]

    platform.will("POST", path, stream(chunk(1, 0), event("error", problem_document("container_died"))))
    chunks = count.remote_gen(2)
    assert next(chunks) == 0
    with pytest.raises(pilotlight.ContainerDied):
        next(chunks)
    assert len(platform.asked(path)) == 2


def test_a_function_by_name_takes_positions_from_its_schema(platform: ScriptedPlatform) -> None:
    """The deployed schema has the order of the parameters, and is fetched once."""
    schema = {"properties": {"a": {}, "b": {}}, "x-pilotlight-order": ["a", "b"], "x-pilotlight-method": ""}
    platform.will("GET", "/v1/functions/hello.add/openapi.json", answer({"components": [{"input": schema}]}))
    platform.will("POST", "/v1/functions/hello.add/calls", stream(result(3)))
    add = Function.from_name("hello", "add")

    assert (add.remote(1, 2), add.remote(1, b=2)) == (3, 3)
    assert [request.call["input"] for request in platform.asked("/v1/functions/hello.add/calls")] == [
        {"a": 1, "b": 2}
    ] * 2
    assert len(platform.asked("/v1/functions/hello.add/openapi.json")) == 1
    with pytest.raises(TypeError, match=r"\(a, b\)"):
        add.remote(1, 2, 3)


async def test_a_silent_platform_is_left_at_the_deadline(platform: ScriptedPlatform) -> None:
    """The caller waits no longer than its deadline and the grace."""
    held = stream(event("stage", {"name": "queued"}), hold=True)
    platform.will("POST", GREET, held)
    connection = PlatformConnection(ClientConfig(url=platform.url, api_key=KEY))
    calls = CallsClient(connection, grace_s=0.0)
    with pytest.raises(pilotlight.DeadlineExceeded, match=r"hello\.greet was not answered within 0\.05 s"):
        await calls.call(greet.options(deadline=0.05).target, ("Ada",), {})
    assert await asyncio.to_thread(held.hung_up.wait, 5)
    await connection.aclose()


def test_a_function_by_name_without_a_known_order_takes_names(platform: ScriptedPlatform) -> None:
    """A function that another tool deployed has no order of parameters."""
    platform.will("GET", "/v1/functions/hello.raw/openapi.json", answer({"paths": {}}))
    with pytest.raises(TypeError, match="pass arguments by name"):
        Function.from_name("hello", "raw").remote(1)


def test_an_unreachable_platform_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The advice names `pilotlight up`."""
    monkeypatch.setenv("PILOTLIGHT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PILOTLIGHT_API_KEY", KEY)

    with pytest.raises(pilotlight.Unavailable, match="pilotlight up"):
        greet.options(deadline=0.05).remote("Ada")


def test_a_blocking_call_from_a_callback_is_refused(platform: ScriptedPlatform) -> None:
    """It would wait for its own event loop."""
    platform.will("POST", GREET, stream(event("stage", {"name": "queued"}), result("x")))

    with pytest.raises(RuntimeError, match="callback"):
        greet.options(on_stage=lambda *_: greet.remote("B")).remote("A")


def test_many_threads_share_one_pool(platform: ScriptedPlatform) -> None:
    """Calls from several threads run at a time."""
    barrier = threading.Barrier(4)
    platform.does("POST", GREET, lambda request: stream(result(request.call["input"]["name"])))
    answers: list[str] = []

    def work(name: str) -> None:
        barrier.wait(5)
        answers.append(greet.remote(name))

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(answers) == ["0", "1", "2", "3"]
