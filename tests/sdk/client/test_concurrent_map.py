"""Many calls at once."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pilotlight.client.concurrent_map import MAX_WINDOW, WINDOW, map_calls, window_of
from pilotlight.client.portal import shared_portal


class CallsClient:
    """Calls that end when a test says so, or at once; counts how many run."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.running = self.most = 0
        self.gates: dict[Any, asyncio.Event] = {name: asyncio.Event() for name in (0, 1, 2, "bad")}
        self.began = asyncio.Semaphore(0)
        self.at_once = at_once

    async def __call__(self, arguments: tuple[Any, ...]) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            self.began.release()
            if not self.at_once:
                await self.gates[arguments[0]].wait()
            await asyncio.sleep(0)
            if arguments[0] == "bad":
                raise ValueError("bad")
            return arguments[0]
        finally:
            self.running -= 1


async def test_answers_keep_the_order_of_their_inputs() -> None:
    """A later call may end first."""
    calls = CallsClient(at_once=False)
    answers = map_calls(calls, [(number,) for number in range(3)])
    task = asyncio.ensure_future(anext(answers))
    for _ in range(3):
        await calls.began.acquire()
    for number in (2, 1, 0):
        calls.gates[number].set()
    assert [await task, *[answer async for answer in answers]] == [0, 1, 2]


async def test_answers_may_come_as_they_end() -> None:
    """Without an order the first answer is the first one to end."""
    calls = CallsClient(at_once=False)
    answers = map_calls(calls, [(0,), (1,)], ordered=False)
    task = asyncio.ensure_future(anext(answers))
    for _ in range(2):
        await calls.began.acquire()
    calls.gates[1].set()
    assert await task == 1
    calls.gates[0].set()
    assert [answer async for answer in answers] == [0]


def test_an_endless_input_is_read_as_room_appears() -> None:
    """Neither calls nor inputs exceed the window, and leaving ends the calls."""
    calls, read = CallsClient(), itertools.count()
    answers = shared_portal().iterate(map_calls(calls, ((next(read),) for _ in itertools.count())))
    assert list(itertools.islice(answers, 200)) == list(range(200))
    answers.close()  # type: ignore[attr-defined]
    assert calls.most <= WINDOW
    assert next(read) <= 200 + 3 * WINDOW
    assert calls.running == 0


async def test_the_first_exception_ends_the_rest() -> None:
    """Running calls are cancelled."""
    calls = CallsClient(at_once=False)
    calls.gates["bad"].set()
    with pytest.raises(ValueError, match="bad"):
        await anext(map_calls(calls, [("bad",), (1,), (2,)]))
    assert calls.running == 0


async def test_exceptions_may_be_kept() -> None:
    """An exception stands in the place of its answer."""
    answers = [answer async for answer in map_calls(CallsClient(), [(1,), ("bad",), (2,)], keep_exceptions=True)]
    assert [type(answer) for answer in answers] == [int, ValueError, int]


async def test_an_error_of_the_inputs_is_raised() -> None:
    """Only exceptions of calls are kept."""

    def inputs() -> Iterator[tuple[int]]:
        yield (1,)
        raise KeyError("inputs")

    with pytest.raises(KeyError, match="inputs"):
        _ = [answer async for answer in map_calls(CallsClient(), inputs(), keep_exceptions=True)]
    with pytest.raises(TypeError, match="not iterable"):
        _ = [answer async for answer in map_calls(CallsClient(), [3], keep_exceptions=True)]  # type: ignore[list-item]


async def test_inputs_may_block() -> None:
    """Inputs are read in a thread."""
    gate = threading.Event()

    def inputs() -> Iterator[tuple[int]]:
        yield (1,)
        gate.wait(5)
        yield (2,)

    answers = map_calls(CallsClient(), inputs())
    assert await anext(answers) == 1
    gate.set()
    assert [answer async for answer in answers] == [2]


def test_a_batched_function_gets_two_batches_at_a_time() -> None:
    """One batch runs while the other forms."""
    assert [window_of(size) for size in (None, 8, 100, 1000)] == [WINDOW, WINDOW, 200, MAX_WINDOW]


async def test_inputs_that_break_everything_off_end_the_answers() -> None:
    """The reader of the answers does not wait for ever."""

    class Stop(BaseException):
        """No Exception: nobody is expected to catch it."""

    def inputs() -> Iterator[tuple[int]]:
        yield (0,)
        raise Stop

    async with asyncio.timeout(30):
        with pytest.raises(BaseExceptionGroup) as failed:
            _ = [answer async for answer in map_calls(CallsClient(), inputs())]

    assert failed.group_contains(Stop)
