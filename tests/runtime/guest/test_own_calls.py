"""Warm-up examples and the check, as a guest runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any

import pytest

import pilotlight
from pilotlight_core.model import values
from pilotlight_core.model.messages.running_code import RUNNING_CALL
from pilotlight_core.model.rehearsals.rehearsal import CheckExample, Rehearsal, WarmupExample
from pilotlight_core.model.spec import Batching, FunctionSpec, Mode
from pilotlight_runtime.guest.basics.remote_errors import BadArguments
from pilotlight_runtime.guest.frames import CHECK_METHOD
from pilotlight_runtime.guest.guest_target import target_of
from pilotlight_runtime.guest.own_calls import OwnCalls
from tests.builders.specs import function_spec, method

LOG: list[Any] = []


class Model:
    """Its methods log what they got."""

    def one(self, text: str) -> str:
        LOG.append(text)
        pilotlight.count_units(custom=1)
        return text.upper()

    def many(self, text: list[str]) -> list[str]:
        LOG.append(text)
        pilotlight.count_units(custom=[1 for _ in text])
        return [each.upper() for each in text] if text != ["short"] else []

    def stream(self, upto: int) -> Iterator[int]:
        for number in range(upto):
            LOG.append(number)
            yield number

    def healthy(self) -> None:
        LOG.append("healthy")

    async def healthy_too(self) -> bool:
        LOG.append("healthy too")
        return True

    def sick(self) -> bool:
        return False


class AsyncModel(Model):
    async def later(self, text: str) -> str:
        LOG.append(("later", text, RUNNING_CALL.get()))
        await asyncio.sleep(0)
        return text

    async def trickle(self, upto: int) -> AsyncIterator[int]:
        for number in range(upto):
            LOG.append(number)
            yield number


METHODS = (
    method("one", "one"),
    method("many", "many", batching=Batching(max_batch_size=4)),
    method("stream", "stream", mode=Mode.GENERATOR),
)
ASYNC = (
    *METHODS,
    method("later", "later", is_async=True),
    method("trickle", "trickle", mode=Mode.GENERATOR, is_async=True),
)


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def example(name: str, *inputs: dict[str, Any]) -> WarmupExample:
    return WarmupExample(method=name, inputs=tuple(values.encode(each) for each in inputs))


def known(name: str, given: dict[str, Any], output: Any) -> CheckExample:
    return CheckExample(method=name, input=values.encode(given), output=values.encode(output))


def spec_of(*, is_async: bool = False, **rehearsal: Any) -> FunctionSpec:
    return function_spec("f", *(ASYNC if is_async else METHODS), is_class=True, rehearsal=Rehearsal(**rehearsal))


def run_to_end(pending: Awaitable[Any]) -> Any:
    async def awaited() -> Any:
        return await pending

    return asyncio.run(awaited())


def own_calls(spec: FunctionSpec) -> OwnCalls:
    is_async = any(method.is_async for method in spec.methods)
    target = target_of(spec, AsyncModel if is_async else Model)
    return OwnCalls(spec, target) if is_async else OwnCalls(spec, target, run_to_end)


def test_each_example_runs_as_a_call_would() -> None:
    """Alone, as a batch, and to the end of a stream; units cost nobody anything."""
    own = own_calls(
        spec_of(
            warmup=(
                example("one", {"text": "a"}),
                example("many", {"text": "b"}, {"text": "c"}),
                example("many", {"text": "d"}),
                example("stream", {"upto": 2}),
            )
        )
    )
    assert own.has_warmup
    own.warm_up()

    assert LOG == ["a", ["b", "c"], ["d"], 0, 1]


async def test_in_an_event_loop_each_runs_in_its_own_way(anyio_backend: str) -> None:
    """What would block it in a thread; no call is told of."""
    own = own_calls(
        spec_of(
            is_async=True,
            warmup=(
                example("later", {"text": "a"}),
                example("one", {"text": "b"}),
                example("many", {"text": "c"}, {"text": "d"}),
                example("trickle", {"upto": 2}),
                example("stream", {"upto": 1}),
            ),
        )
    )
    await own.warm_up_async()

    assert LOG == [("later", "a", ""), "b", ["c", "d"], 0, 1, 0]


@pytest.mark.parametrize(
    ("warmup", "error"),
    [
        (example("one", {"text": 1}), BadArguments),
        (example("many", {"text": "short"}), TypeError),
        (example("stream", {}), BadArguments),
    ],
)
def test_an_example_that_cannot_run_raises(warmup: WarmupExample, error: type[Exception]) -> None:
    """And the start fails."""
    with pytest.raises(error):
        own_calls(spec_of(warmup=(warmup,))).warm_up()


@pytest.mark.parametrize("is_async", [False, True])
def test_all_checks_run_and_then_the_call_whose_answer_is_known(*, is_async: bool) -> None:
    """Asynchronous ones too, with a loop and without one."""
    own = own_calls(
        spec_of(checks=("healthy", "healthy_too"), example=known("one", {"text": "a"}, "A"), is_async=is_async)
    )
    assert own.has_check
    if is_async:
        asyncio.run(own.check_async())
    else:
        own.check()

    assert LOG == ["healthy", "healthy too", "a"]


@pytest.mark.parametrize(
    ("rehearsal", "error", "why"),
    [
        ({"checks": ("sick",)}, RuntimeError, "sick answered False"),
        ({"example": known("one", {"text": "a"}, "B")}, AssertionError, "the check's example: the answer is 'A'"),
        ({"example": known("stream", {"upto": 2}, [0])}, AssertionError, "the answer has 2 items: expected 1"),
        ({"example": known("many", {"text": "a"}, ["A"])}, AssertionError, "the answer is 'A'"),
    ],
)
def test_a_check_that_fails_says_what_is_wrong(rehearsal: dict[str, Any], error: type[Exception], why: str) -> None:
    """Whichever it is."""
    with pytest.raises(error, match=why):
        own_calls(spec_of(**rehearsal)).check()


@pytest.mark.parametrize("is_async", [False, True])
def test_the_check_is_kept_as_a_method_that_no_caller_can_name(*, is_async: bool) -> None:
    """The agent has it run between calls."""
    spec = spec_of(checks=("healthy",), is_async=is_async)
    target = target_of(spec, AsyncModel if is_async else Model)
    OwnCalls(spec, target).keep_check(is_async=is_async)

    assert CHECK_METHOD not in target_of(spec, AsyncModel if is_async else Model).methods
    kept = target.methods[CHECK_METHOD]
    assert kept.parameters.read(values.encode({})) == {}
    assert (kept.is_async, kept.streams) == (is_async, False)
    answer = kept.function()
    if is_async:
        asyncio.run(answer)
    assert LOG == ["healthy"]
