"""Values off the wire, made what type hints say."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import numpy
import pytest
from numpy.typing import NDArray

from pilotlight_core.model import hints, values
from pilotlight_core.model.hints import converter
from tests.builders.hinted import Model, Point


class Colour(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    left: int
    right: str


class Box(msgspec.Struct):
    corner: Point


def read(hint: Any, value: Any) -> Any:
    """What `value` becomes, sent for a parameter with `hint`."""
    convert, came = converter(hint), values.decode(values.encode(value))
    return came if convert is None else convert(came)


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (int, 3, 3),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (str | int, "3", "3"),
        (bytes, base64.b64encode(b"hi").decode(), b"hi"),
        (bytes, b"hi", b"hi"),
        (Colour, "red", Colour.RED),
        (Literal["a", "b"], "a", "a"),
        (uuid.UUID, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        (Decimal, "1.50", Decimal("1.50")),
        (Pair, [1, "a"], Pair(1, "a")),
        (datetime.date, "2026-11-20", datetime.date(2026, 11, 20)),
        (Point, {"x": 1}, Point(x=1)),
        (list[Point], [{"x": 1, "y": 2}], [Point(x=1, y=2.0)]),
        (Box, {"corner": {"x": 1}}, Box(corner=Point(x=1))),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 1], {1}),
        (Annotated[int, "whatever"], 3, 3),
        (Any, {"a": [1]}, {"a": [1]}),
        (Path, "a/b", "a/b"),
        (Callable[[int], int], "f", "f"),
        (bytes | str, "f", "f"),
        (list[Path], ["a"], ["a"]),
    ],
)
def test_values_become_what_the_hint_says(hint: Any, value: Any, expected: Any) -> None:
    """Where the hint is known the value is converted, and where it is not it is passed as it came."""
    got = read(hint, value)

    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value"),
    [(numpy.ndarray, [[1, 2]]), (NDArray[numpy.float32], [[1, 2]]), (NDArray[Any] | None, [[1, 2]]),
     (numpy.ndarray, numpy.array([[1, 2]]))],
)  # fmt: skip
def test_nested_lists_become_arrays(hint: Any, value: Any) -> None:
    """JSON callers send nested lists where the hint is an array; arrays are left alone."""
    got = read(hint, value)

    assert isinstance(got, numpy.ndarray)
    assert got.shape == (1, 2)
    assert got.dtype == (numpy.float32 if hint == NDArray[numpy.float32] else numpy.int64)


def test_numpy_scalars_and_models_are_made() -> None:
    """Other types that can be made from JSON values."""
    assert read(numpy.float32, 0.5) == numpy.float32(0.5)
    assert read(Model, {"a": 1}).value == {"a": 1}


def test_nested_lists_become_tensors() -> None:
    """As they become arrays: alone, in lists, where None may stand too, and of the dtype that the hint has."""
    torch: Any = pytest.importorskip("torch")
    many: Any = GenericAlias(list, (torch.Tensor,))

    assert torch.equal(read(torch.Tensor, [[1.0, 2.0]]), torch.tensor([[1.0, 2.0]]))
    assert torch.equal(read(torch.Tensor | None, 3), torch.tensor(3))
    assert read(torch.Tensor | None, None) is None
    assert [one.tolist() for one in read(many, [[1.0], [2.0]])] == [[1.0], [2.0]]
    assert (read(torch.LongTensor, [1.0]).dtype, read(torch.FloatTensor, [1]).dtype) == (torch.int64, torch.float32)
    assert torch.equal(read(torch.Tensor, torch.ones(2)), torch.ones(2))
    assert torch.equal(read(torch.Tensor, numpy.ones(2)), torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("value", [[[1], [1, 2]], "x", {"a": 1}, [None], [2**63]])
def test_what_is_no_tensor_is_the_callers_mistake(value: Any) -> None:
    """torch says so in three ways, and each names what is wrong."""
    torch = pytest.importorskip("torch")

    with pytest.raises((ValueError, TypeError, msgspec.ValidationError)):
        read(torch.Tensor, value)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One with defaults of both kinds."""

    name: str
    label: str = "none"
    parts: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Tree:
    """One that holds others."""

    leaves: list[Leaf]
    by_name: dict[str, Leaf | None] = dataclasses.field(default_factory=dict)
    depth: int = 1


class LeafAndNumber(NamedTuple):
    """A tuple that holds one."""

    leaf: Leaf
    number: int


class Card(TypedDict):
    """A dictionary that holds one."""

    leaf: Leaf


class Numbers(list[float]):
    """A list that must not be walked."""

    def __iter__(self) -> Iterator[float]:
        raise AssertionError("walked")


@dataclasses.dataclass
class Series:
    """Many numbers beside a dataclass."""

    numbers: list[float]
    leaf: Leaf


@pytest.mark.parametrize(
    ("hint", "value"),
    [(LeafAndNumber, [{"name": "a"}, 1]), (Card, {"leaf": {"name": "a"}}), (list[Card], [{"leaf": {"name": "a"}}])],
)
def test_defaults_are_set_within_tuples_and_dictionaries_too(hint: Any, value: Any) -> None:
    """Of every kind that hints know."""
    convert = converter(hint)
    assert convert is not None

    assert b'"label":"none"' in msgspec.json.encode(convert(value))


def test_what_holds_no_dataclass_is_not_walked() -> None:
    """A million numbers take no second."""
    series = Series(numbers=Numbers(), leaf=msgspec.convert({"name": "a"}, Leaf))

    hints._set_defaults(series)

    assert vars(series.leaf)["label"] == "none"


@pytest.mark.parametrize("hint", [Tree, list[Tree], Tree | None, dict[str, tuple[Tree, ...]]])
def test_defaults_of_dataclasses_are_written_again(hint: Any) -> None:
    """What a function was given and returns is whole."""
    tree = {"leaves": [{"name": "a"}], "by_name": {"b": {"name": "b"}, "c": None}}
    of_hint = {list[Tree]: [tree], dict[str, tuple[Tree, ...]]: {"t": (tree,)}}.get(hint, tree)
    convert = converter(hint)
    assert convert is not None

    written = msgspec.json.encode(convert(of_hint))

    leaf = {"label": "none", "parts": []}
    whole = {"leaves": [{"name": "a"} | leaf], "by_name": {"b": {"name": "b"} | leaf, "c": None}, "depth": 1}
    assert msgspec.json.decode(written) == {list[Tree]: [whole], dict[str, tuple[Tree, ...]]: {"t": [whole]}}.get(
        hint, whole
    )
