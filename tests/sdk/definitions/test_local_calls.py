"""Running functions here, as their containers would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from pilotlight import App, BadInput, Cls, Function, Obj, batched, enter, method

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


def test_a_plain_call_runs_here() -> None:
    """`f(x)` is `f.local(x)`; a coroutine and a generator are what they are."""
    assert (double(2), double.local(x=3)) == (4, 6)
    assert asyncio.run(later(5)) == 5
    assert list(count(3)) == [0, 1, 2]


def test_a_batched_function_takes_one_item() -> None:
    """As from outside: it sees a batch of one, and an exception in an item's place is that item's."""
    assert lengths.local("abc") == 3
    with pytest.raises(ValueError, match="empty"):
        lengths("")
    assert lengths.__wrapped__(["a", "bc"]) == [1, 2]
    with pytest.raises(ValueError, match="batch of 1 and answered 0"):
        asyncio.run(short.local.aio("a"))


async def test_aio_runs_anything_in_a_loop() -> None:
    """Plain, async, generators of both kinds."""
    assert await double.local.aio(2) == 4
    assert await later.local.aio(2) == 2
    assert [number async for number in count.local.aio(2)] == [0, 1]
    assert [number async for number in acount.local.aio(2)] == [0, 1]
    assert await Model().predict.local.aio("x") == "x 1 True"


async def test_an_async_hook_cannot_run_below_a_running_loop() -> None:
    """The way to do it is named."""
    with pytest.raises(RuntimeError, match=r"await \.local\.aio"):
        Model().predict.local("x")


def test_hooks_run_once_per_instance() -> None:
    """However many methods are called."""
    model = Model()
    assert [model.predict.local("a"), model.predict("b"), model.embed("abc")] == ["a 1 True", "b 1 True", 3]


def test_a_class_says_how_it_is_used() -> None:
    """It is a class first; an instance has its methods, and the class itself is at hand."""
    wrapped: Any = Model
    assert isinstance(wrapped, Cls)
    assert isinstance(wrapped(), Obj)
    assert (repr(wrapped), repr(wrapped()), repr(wrapped().predict)) == (
        "Cls('local.Model')", "Model()", "Function('local.Model.predict')",
    )  # fmt: skip
    assert wrapped.size == 3
    assert "predict" in dir(wrapped())
    for attribute in ("remote", "predict"):
        with pytest.raises(AttributeError, match="make an instance first"):
            getattr(wrapped, attribute)
    with pytest.raises(AttributeError, match="it has predict, embed"):
        wrapped().helper()
    with pytest.raises(TypeError, match="takes no arguments yet"):
        wrapped(3)

    class Larger(wrapped):  # type: ignore[misc]
        size = 4

    assert Larger.__mro__[1] is wrapped.__wrapped__


def test_a_function_by_name_has_no_code_here() -> None:
    """It can be called there only; names are checked at once."""
    found = Function.from_name("other:search", "embed", version="canary", method="go")
    assert found.target.label == "other:search.embed@canary.go"
    assert Function.from_name("a", "b", version=3).ref.pin == "v3"
    with pytest.raises(BadInput, match="was found by name"):
        found.local(1)
    with pytest.raises(BadInput, match="was found by name"):
        _ = found.spec
    with pytest.raises(BadInput, match="is not a name"):
        Function.from_name("a.b", "c")


def test_options_are_checked() -> None:
    """An id and a deadline are what they should be, and options add up."""
    assert double.options(deadline=3).options(id="cid_12345678").target.settings.deadline == 3
    with pytest.raises(BadInput, match="expected cid_"):
        double.options(id="mine")
    with pytest.raises(BadInput, match="more than 0"):
        double.options(deadline=0)
    with pytest.raises(BadInput, match="names one call"):
        double.options(id="cid_12345678").map([1])
    with pytest.raises(TypeError, match="at least one iterable"):
        double.map()
