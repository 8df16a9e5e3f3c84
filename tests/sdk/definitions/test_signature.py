"""Signatures as method specs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pilotlight import OptionError, batched
from pilotlight.definitions.decorated import markers_of
from pilotlight.definitions.signature import Callee, method_spec
from pilotlight_core.model.spec import Batching, MethodSpec

if TYPE_CHECKING:
    from torch import Tensor


Scores = dict[str, float]


def callee_of(function: Callable[..., Any]) -> Callee:
    return Callee(function=function, name="", attribute=function.__name__, batched=markers_of(function).batched)


def spec_of(function: Callable[..., Any]) -> MethodSpec:
    return method_spec(callee_of(function))


def test_parameters_become_properties() -> None:
    """Those without a default are required, others are refused, and the order is kept."""

    def search(
        query: str, limit: int = 10, *, exact: bool = False, within: list[str] | None = None
    ) -> dict[str, float]:
        """Find things."""
        raise NotImplementedError

    schema = spec_of(search).input_schema
    assert schema["properties"]["query"] == {"type": "string"}
    assert schema["properties"]["limit"] == {"type": "integer", "default": 10}
    assert schema["properties"]["within"]["default"] is None
    assert (schema["required"], schema["additionalProperties"]) == (["query"], False)
    assert schema["x-pilotlight-order"] == ["query", "limit", "exact", "within"]
    assert schema["description"] == "Find things."
    assert spec_of(search).output_schema == {"type": "object", "additionalProperties": {"type": "number"}}


def test_keywords_of_any_name_open_the_schema() -> None:
    """Their values have the hint's type."""

    def free(a: int, **rest: int) -> None: ...

    def freer(**rest) -> None: ...  # type: ignore[no-untyped-def]

    assert spec_of(free).input_schema["additionalProperties"] == {"type": "integer"}
    assert spec_of(freer).input_schema["additionalProperties"] is True
    assert callee_of(free).bind_arguments((1,), {"b": 2}) == {"a": 1, "b": 2}


def test_a_parameter_without_a_hint_accepts_anything() -> None:
    """So does a hint that cannot be evaluated, except that of an array."""

    def loose(a, b: Missing, c: Tensor) -> Unknown: ...  # type: ignore[no-untyped-def, name-defined]  # noqa: F821

    properties = spec_of(loose).input_schema["properties"]
    assert (properties["a"], properties["b"]) == ({}, {})
    assert properties["c"]["x-pilotlight"] == "ndarray"
    assert spec_of(loose).output_schema == {}


def test_defaults_that_are_no_json_are_left_out() -> None:
    """The parameter stays optional."""

    def odd(a: Any = object(), b: str = "x" * 999) -> None: ...  # noqa: B008

    assert spec_of(odd).input_schema["properties"] == {"a": {}, "b": {"type": "string"}}
    assert spec_of(odd).output_schema == {"type": "null"}


def test_a_generator_is_described_by_its_chunks() -> None:
    """The hint's argument is the type of a chunk."""

    def words() -> Iterator[str]:
        yield ""

    assert spec_of(words).output_schema == {"type": "string"}


def test_a_batched_function_is_described_by_its_items() -> None:
    """A caller sends one item; the platform makes the lists."""

    @batched(max_batch_size=8, wait_ms=5, cost=len, max_batch_cost=100)
    def embed(texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    spec = spec_of(embed)
    assert spec.input_schema["properties"] == {"texts": {"type": "string"}}
    assert spec.output_schema == {"type": "array", "items": {"type": "number"}}
    assert spec.batching == Batching(max_batch_size=8, wait_ms=5.0, cost_of="len:texts", max_batch_cost=100.0)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (None, None),
        ("texts", "len:texts"),
        ("tokens", "value:tokens"),
        ("len:tokens", "len:tokens"),
        ("value:tokens",) * 2,
    ],
)
def test_cost_is_a_length_or_a_value(cost: str | None, expected: str | None) -> None:
    """By default a number counts by its value, and anything else by its length."""

    @batched(max_batch_size=8, cost=cost)
    def embed(texts: list[str], tokens: list[int]) -> list[int]:
        raise NotImplementedError

    batching = spec_of(embed).batching
    assert batching is not None
    assert batching.cost_of == expected


def test_parameters_that_cannot_be_sent_are_refused() -> None:
    """The error has the alternative."""

    def positional(a: int, /) -> None: ...
    def many(*a: int) -> None: ...

    for function, message in ((positional, "remove the '/'"), (many, "take a list")):
        with pytest.raises(OptionError, match=message):
            spec_of(function)


def test_a_function_that_cannot_be_batched_is_refused() -> None:
    """Its parameters need names and lists, and it has to return."""
    make = batched(max_batch_size=8)

    def not_a_list(text: str) -> list[int]: ...  # type: ignore[empty-body]
    def nothing() -> list[int]: ...  # type: ignore[empty-body]
    def default(texts: list[str] = []) -> list[int]: ...  # type: ignore[empty-body]  # noqa: B006
    def open_ended(**texts: list[str]) -> list[int]: ...  # type: ignore[empty-body]
    def generator(texts: list[str]) -> Iterator[int]:
        yield 1

    for function, message in (
        (not_a_list, r"annotate text: list\[str\]"),
        (nothing, "needs a parameter"),
        (default, "can have no default"),
        (open_ended, "name the parameters"),
        (generator, "a generator cannot be batched"),
    ):
        with pytest.raises(OptionError, match=message):
            spec_of(make(function))

    def two(a: list[int], b: list[int]) -> list[int]: ...  # type: ignore[empty-body]

    for cost, message in (
        (len, 'write cost="len:a"'),
        ("c", "one of its parameters"),
        ("max:a", "one of its parameters"),
    ):
        with pytest.raises(OptionError, match=message):
            spec_of(batched(max_batch_size=8, cost=cost)(two))


def test_arguments_are_bound_as_in_python() -> None:
    """Positions, keywords and errors are those of a call."""

    def f(a: int, b: int = 2) -> None: ...

    callee = callee_of(f)
    assert callee.bind_arguments((1,), {}) == {"a": 1}
    assert callee.bind_arguments((1, 3), {}) == {"a": 1, "b": 3}
    with pytest.raises(TypeError, match="too many positional arguments"):
        callee.bind_arguments((1, 2, 3), {})
    assert inspect.signature(f).parameters.keys() == {"a", "b"}
