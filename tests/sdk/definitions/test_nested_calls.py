"""Functions that call functions through the platform, found before they are deployed."""

from __future__ import annotations

from typing import Any

import pytest

import pilotlight
from pilotlight import App, Function, OptionError, method
from pilotlight.definitions.nested_calls import find_remote_call

app = App("nested")


@app.gpu_function
def inner(x: int) -> Any:
    return x


@app.gpu_function
class Model:
    @method()
    def predict(self, x: int) -> int:
        return x


def direct(x: int) -> Any:
    return inner.remote(x)


def in_comprehension(items: list[int]) -> Any:
    return [list(inner.map([item])) for item in items]


def asynchronous(x: int) -> Any:
    return inner.remote.aio(x)


def of_a_class(x: int) -> Any:
    return Model().predict.remote(x)


def in_closure(x: int) -> Any:
    def later() -> Any:
        return inner.spawn(x)

    return later


def by_name(x: int) -> Any:
    return Function.from_name("shop", "price").remote(x)


def by_name_later(x: int) -> Any:
    price = pilotlight.Function.from_name("shop", "price")
    return [price.spawn(one) for one in range(x)]


def with_options(x: int) -> Any:
    return inner.options(deadline=3).remote(x)


elsewhere = Function.from_name("shop", "price")


def found_before(x: int) -> Any:
    return elsewhere.remote(x)


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (direct, "inner.remote"),
        (in_comprehension, "inner.map"),
        (asynchronous, "inner.remote"),
        (of_a_class, "Model().predict.remote"),
        (in_closure, "inner.spawn"),
        (by_name, "Function.from_name(…).remote"),
        (by_name_later, "pilotlight.Function.from_name(…).spawn"),
        (found_before, "elsewhere.remote"),
        (with_options, "inner.options(…).remote"),
    ],
)
def test_a_function_that_calls_another_is_refused(function: Any, path: str) -> None:
    """The decorator's error names the call."""
    assert find_remote_call(function) == path
    with pytest.raises(OptionError, match="cannot call another through the platform yet"):
        app.gpu_function(function)


def plain_call(x: Any) -> Any:
    return inner(x).map(str), inner.local(x), x.remote(), len.__doc__


def other_names(x: Any) -> Any:
    return x.from_name("a").remote(), x.options(a=1).map(str)


def never_called() -> Any:
    return Function.from_name("shop", "price").name


def test_plain_calls_are_accepted() -> None:
    """Values may have a `.map`, and other objects a `.remote`."""
    assert find_remote_call(plain_call) is None
    assert find_remote_call(other_names) is None
    assert find_remote_call(never_called) is None
    assert find_remote_call(len) is None
