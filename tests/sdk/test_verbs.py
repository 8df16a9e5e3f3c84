"""The verbs of a Function: the wrong one is refused, each is there for event loops too, and leaving cancels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import pilotlight
from pilotlight import Client, Function, Misuse, OptionError, gpu_function, method
from tests.sdk.cli.every_command import BOUNDS
from tests.sdk.scripted import JOB, ScriptedPlatform, answer, chunk, event, job_taken, result, stream

GREET = "/v1/functions/verbs.greet/calls"
COUNT = "/v1/functions/verbs.count/calls"


@gpu_function(app="verbs")
def greet(name: str, times: int = 1) -> str:
    return f"hello {name}" * times


@gpu_function(app="verbs")
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


@gpu_function(app="verbs")
class Model:
    @method()
    def embed(self, text: str) -> str:
        return text


def test_the_wrong_verb_names_the_right_one(platform: ScriptedPlatform) -> None:
    """A known function is refused before anything is sent."""
    with pytest.raises(TypeError, match="remote_gen"):
        count.remote(3)
    with pytest.raises(TypeError, match=r"\.remote\("):
        greet.remote_gen("Ada")
    with pytest.raises(TypeError, match="generator"):
        count.map([1])
    assert platform.requests == []


def test_the_wrong_verb_of_a_function_by_name_is_an_error(platform: ScriptedPlatform) -> None:
    """The platform's answer shows whether the function is a generator."""
    found = Function.from_name("verbs", "words", version=7)
    platform.will("POST", "/v1/functions/verbs.words@v7/calls", stream(chunk(1, "a"), hold=True))
    with pytest.raises(pilotlight.BadInput, match="remote_gen"):
        found.remote(text="x")
    platform.will("POST", "/v1/functions/verbs.words@v7/calls", stream(result("a")))
    with pytest.raises(pilotlight.BadInput, match=r"\.remote\("):
        list(found.remote_gen(text="x"))


async def test_async_callers_get_the_same(platform: ScriptedPlatform) -> None:
    """Each verb has an `.aio`."""
    platform.does("POST", GREET, lambda request: stream(result(request.call["input"]["name"].upper())))
    platform.will("POST", COUNT, stream(chunk(1, 1), chunk(2, 2), result(None)))

    assert await greet.remote.aio("a") == "A"
    assert [value async for value in count.remote_gen.aio(2)] == [1, 2]
    assert [value async for value in greet.map.aio(["a", "b"], durable=False)] == ["A", "B"]
    assert [value async for value in greet.starmap.aio([("c", 1)], durable=False)] == ["C"]
    async with asyncio.timeout(30):
        left: AsyncIterator[Any] = count.remote_gen.aio(2)
        assert await anext(left) == 1
        await left.aclose()  # type: ignore[attr-defined]


def test_leaving_a_stream_hangs_up(platform: ScriptedPlatform) -> None:
    """The closed connection cancels the call at the platform."""
    held = stream(chunk(1, "a"), hold=True)
    platform.will("POST", COUNT, held)

    for value in count.remote_gen(9):
        assert value == "a"
        break
    assert held.hung_up.wait(5)


async def test_cancelling_a_task_hangs_up(platform: ScriptedPlatform) -> None:
    """An async caller ends a call as a blocking one does."""
    held = stream(event("stage", {"name": "queued"}), hold=True)
    platform.will("POST", GREET, held)
    queued = asyncio.Event()
    loop = asyncio.get_running_loop()
    function = greet.options(on_stage=lambda *_: loop.call_soon_threadsafe(queued.set))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(function.remote.aio("Ada"))
        await queued.wait()
        task.cancel()
    assert await asyncio.to_thread(held.hung_up.wait, 5)


def test_a_generators_call_is_stored_too(platform: ScriptedPlatform) -> None:
    """Any function may be spawned, and a given client stays with the call."""
    platform.will("POST", COUNT, job_taken())
    assert count.spawn(3).id == JOB
    with Client(url=platform.url, api_key="another") as client:
        assert count.options(client=client).spawn(3)._client is client


def test_options_that_a_verb_cannot_keep_are_refused(platform: ScriptedPlatform) -> None:
    """Stages are those of a live call, and an id or a key names one call."""
    with pytest.raises(OptionError, match=r"a spawned call tells no stages; ask for its status\(\)"):
        greet.options(on_stage=print).spawn("Ada")
    with pytest.raises(OptionError, match=r"\.map\(…, durable=False\)"):
        greet.options(on_stage=print).map(["Ada"])
    with pytest.raises(Misuse, match=r"options\(id=…\) names one call"):
        greet.options(id="cid_12345678").map(["Ada"])
    with pytest.raises(Misuse, match=r"with \.starmap\(\) each has a key of its own"):
        greet.options(idempotency_key="order-7").starmap([("Ada",)])
    with pytest.raises(TypeError, match="at least one iterable"):
        greet.map()
    assert platform.requests == []


def test_a_function_by_name_does_not_run_in_this_process() -> None:
    """The error names the verb to use."""
    with pytest.raises(Misuse, match=r"Call \.remote\(…\), of a class \.remote\(…\) of Function\.from_name"):
        Function.from_name("verbs", "greet").local("Ada")


def test_a_map_takes_parameters_from_several_iterables(platform: ScriptedPlatform) -> None:
    """The shortest one ends it, and named arguments are the same for all."""
    platform.does("POST", GREET, lambda request: stream(result(request.call["input"])))
    answers = list(greet.map(["a", "b", "c"], [1, 2], durable=False))
    assert answers == [{"name": "a", "times": 1}, {"name": "b", "times": 2}]
    (one,) = greet.starmap([("a",)], kwargs={"times": 3}, durable=False)
    assert one == {"name": "a", "times": 3}


async def test_a_function_is_held_to_another_size(platform: ScriptedPlatform) -> None:
    """What is not given stays; an instant without a zone is of this machine's; a class has one as a whole."""
    path = "/v1/functions/verbs.greet/autoscaler"
    platform.will("PATCH", path, answer(BOUNDS))
    end = datetime(2999, 1, 1, tzinfo=UTC)

    held = await asyncio.to_thread(greet.update_autoscaler, min_containers=2, max_containers=20, until=end)
    await greet.update_autoscaler.aio(
        buffer_containers=1, scaledown_window=5, zero_window=50, forecast=False, until=end.timestamp()
    )

    assert held.min_containers.value == 2
    first, second = (request.json for request in platform.requests)
    assert first == {"min_containers": 2, "max_containers": 20, "ends_at": end.timestamp(), "ends_in_s": None}
    assert second == {
        "buffer_containers": 1, "scaledown_window": 5.0, "zero_window": 50.0, "forecast": False,
        "ends_at": end.timestamp(), "ends_in_s": None,
    }  # fmt: skip


def test_a_class_is_held_to_a_size_as_a_whole(platform: ScriptedPlatform) -> None:
    """And so it is by a method of it."""
    platform.will("PATCH", "/v1/functions/verbs.Model/autoscaler", answer(BOUNDS))
    model: Any = Model
    model.update_autoscaler(min_containers=1)
    model().embed.update_autoscaler(min_containers=0)
    assert [request.json["min_containers"] for request in platform.requests] == [1, 0]
