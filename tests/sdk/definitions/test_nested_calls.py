"""Functions that call functions through the platform, found before they are deployed."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, OptionError, method
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


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (direct, "inner.remote"),
        (in_comprehension, "inner.map"),
        (asynchronous, "inner.remote"),
        (of_a_class, "Model().predict.remote"),
        (in_closure, "inner.spawn"),
    ],
)
def test_a_function_that_calls_another_is_refused(function: Any, path: str) -> None:
    """The decorator's error names the call."""
    assert find_remote_call(function) == path
    with pytest.raises(OptionError, match="cannot call another through the platform yet"):
        app.gpu_function(function)


def plain_call(x: Any) -> Any:
    return inner(x).map(str), inner.local(x), x.remote(), len.__doc__


def test_plain_calls_are_accepted() -> None:
    """Values may have a `.map`, and other objects a `.remote`."""
    assert find_remote_call(plain_call) is None
    assert find_remote_call(len) is None
