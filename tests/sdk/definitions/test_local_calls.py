"""Local calls, as containers make them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from pilotlight import App, batched, enter, method

app = App("local")


@app.gpu_function
def double(x: int) -> int:
    return 2 * x


@app.gpu_function
async def later(x: int) -> int:
    await asyncio.sleep(0)
    return x


@app.gpu_function
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


@app.gpu_function
async def acount(upto: int) -> AsyncIterator[int]:
    for number in range(upto):
        yield number


@app.gpu_function
@batched(max_batch_size=4)
def lengths(texts: list[str]) -> list[Any]:
    return [len(text) if text else ValueError("empty") for text in texts]


@app.gpu_function
@batched(max_batch_size=4)
async def short(texts: list[str]) -> list[Any]:
    return texts[1:]


@app.gpu_function
class Model:
    size = 3

    @enter()
    def load(self) -> None:
        self.loads = getattr(self, "loads", 0) + 1

    @enter()
    async def warm(self) -> None:
        self.warmed = True

    @method()
    def predict(self, text: str) -> str:
        return f"{text} {self.loads} {self.warmed}"

    @batched(max_batch_size=4)
    def embed(self, texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    def helper(self) -> None: ...


def test_a_plain_call_runs_in_this_process() -> None:
    """`f(x)` is `f.local(x)`, which also returns a coroutine or a generator."""
    assert (double(2), double.local(x=3)) == (4, 6)
    assert asyncio.run(later(5)) == 5
    assert list(count(3)) == [0, 1, 2]


def test_a_batched_function_takes_one_item() -> None:
    """The function gets a batch of one, and an exception in place of the answer is raised."""
    assert lengths.local("abc") == 3
    with pytest.raises(ValueError, match="empty"):
        lengths("")
    assert lengths.__wrapped__(["a", "bc"]) == [1, 2]
    with pytest.raises(ValueError, match="batch of 1 and answered 0"):
        asyncio.run(short.local.aio("a"))


async def test_aio_runs_anything_in_a_loop() -> None:
    """Plain and async functions are awaited, and generators of both kinds iterated over."""
    assert await double.local.aio(2) == 4
    assert await later.local.aio(2) == 2
    assert [number async for number in count.local.aio(2)] == [0, 1]
    assert [number async for number in acount.local.aio(2)] == [0, 1]
    assert await Model().predict.local.aio("x") == "x 1 True"


async def test_an_async_hook_cannot_run_below_a_running_loop() -> None:
    """The error names `.local.aio`."""
    with pytest.raises(RuntimeError, match=r"await \.local\.aio"):
        Model().predict.local("x")


def test_hooks_run_once_per_instance() -> None:
    """All methods of an instance share its object."""
    model = Model()
    assert [model.predict.local("a"), model.predict("b"), model.embed("abc")] == ["a 1 True", "b 1 True", 3]
