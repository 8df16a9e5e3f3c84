"""Arguments off the wire, by the type hints of a function."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy
import pytest

from pilotlight_core.model import values
from pilotlight_runtime.guest.basics.arguments import Parameters
from pilotlight_runtime.guest.basics.remote_errors import BadArguments
from tests.builders.hinted import Model, Point


def read(hint: Any, value: Any) -> Any:
    """What a parameter with `hint` gets for `value`."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    return Parameters(function).read(values.encode({"x": value}))["x"]


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (Point, {"x": 1}, Point(x=1)),
        (bytes, base64.b64encode(b"hi").decode(), b"hi"),
        ("Point", {"x": 1}, Point(x=1)),
        ("Nowhere.to.be.found", 1, 1),
    ],
)
def test_values_become_what_the_hint_says(hint: Any, value: Any, expected: Any) -> None:
    """Hints are evaluated where the function stands; one that cannot be is no hint."""
    assert read(hint, value) == expected


def test_an_array_is_known_by_the_name_of_its_type() -> None:
    """Where only type checkers import numpy."""
    assert isinstance(read("hidden.ndarray", [[1, 2]]), numpy.ndarray)


@pytest.mark.parametrize(
    ("hint", "value", "says"),
    [(int, "3x", "x: Expected `int`, got `str`"), (Point, {"x": "a"}, "x: Expected `int`, got `str` - at `$.x`"),
     (Model, "bad", "x: bad is not allowed")],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(hint: Any, value: Any, says: str) -> None:
    """The message names the parameter and what was expected."""
    with pytest.raises(BadArguments, match="x: ") as caught:
        read(hint, value)

    assert str(caught.value) == says


def test_names_are_checked() -> None:
    """What is missing or not known is the caller's mistake, and is named."""

    def function(a: int, b: int = 2) -> None: ...

    parameters = Parameters(function)
    with pytest.raises(BadArguments, match="a: the argument is missing"):
        parameters.read(values.encode({}))
    with pytest.raises(BadArguments, match="c: there is no such argument; there are a, b"):
        parameters.read(values.encode({"a": 1, "c": 3}))


@pytest.mark.parametrize("data", [b"", b"\xc1", values.encode([1]), values.encode({"a": msgspec.msgpack.Ext(99, b"")})])
def test_unreadable_input_is_refused(data: bytes) -> None:
    """What is not the msgpack of an object of arguments."""
    with pytest.raises(BadArguments, match="the input"):
        Parameters(lambda **named: named).read(data)


def test_open_ended_functions_take_any_name() -> None:
    """**named takes what is left, and *rest cannot be named."""

    def function(a: int, *rest: int, **named: int) -> None: ...

    assert Parameters(function).read(values.encode({"a": 1, "z": 2})) == {"a": 1, "z": 2}


def test_positional_only_parameters_are_placed() -> None:
    """On the wire all arguments are named."""

    def function(a: int, b: int = 2, /, c: int = 3) -> None: ...

    parameters = Parameters(function)
    assert parameters.place({"a": 1, "c": 5}) == ([1, 2], {"c": 5})
    assert parameters.place({"a": 1, "b": 7}) == ([1, 7], {})


def test_functions_in_c_take_what_they_take() -> None:
    """Where there is no signature, nothing is checked."""
    assert Parameters(dict).read(values.encode({"a": 1})) == {"a": 1}


def test_columns_convert_each_element() -> None:
    """A batched function is annotated with lists; each item brings one element."""

    def function(text: list[str], weight: Sequence[float], extra: list[Any] | None = None) -> None: ...

    parameters = Parameters(function, columns=True)
    rows = [parameters.read(values.encode(row)) for row in ({"text": "a", "weight": 1}, {"text": "b", "weight": 2})]

    assert parameters.columns(rows) == {"text": ["a", "b"], "weight": [1.0, 2.0]}
    with pytest.raises(BadArguments, match="text: Expected `str`"):
        parameters.read(values.encode({"text": ["a"], "weight": 1}))


def test_columns_fill_gaps_with_none() -> None:
    """A parameter that only some items name is None for the others."""

    def function(a: list[int], b: list[int | None]) -> None: ...

    assert Parameters(function, columns=True).columns([{"a": 1}, {"a": 2, "b": 3}]) == {"a": [1, 2], "b": [None, 3]}
