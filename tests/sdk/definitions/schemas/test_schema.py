"""Type hints as JSON Schema: what a caller may send is accepted, what the hints exclude is not."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import jsonschema_rs
import msgspec
import numpy
import numpy.typing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.definitions.schemas.schema import ARRAY, chunk_of, item_of, schema_of
from pilotlight_core.model import values


class Match(TypedDict):
    text: str
    score: float


class Partial(TypedDict, total=False):
    text: str


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Pair(NamedTuple):
    left: int
    right: str


class Tree(TypedDict):
    children: list[Tree]


def accepts(hint: Any, value: Any) -> bool:
    """Whether the gateway would let `value` pass for a parameter of type `hint`."""
    definitions: dict[str, Any] = {}
    schema = schema_of(hint, definitions)
    seen = values.for_schema(values.decode_opaque(values.encode(value)))
    return bool(jsonschema_rs.validator_for(schema | {"$defs": definitions}).is_valid(seen))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
HINTED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, FINITE | st.integers(-(2**53), 2**53)),
    (str, st.text()),
    (bool, st.booleans()),
    (None, st.none()),
    (bytes, st.binary()),
    (list[int], st.lists(st.integers(0, 99))),
    (tuple[int, str], st.tuples(st.integers(0, 9), st.text())),
    (collections.abc.Sequence[str], st.lists(st.text())),
    (dict[str, float], st.dictionaries(st.text(), st.floats(0, 1))),
    (int | str | None, st.none() | st.text() | st.integers(0, 9)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Annotated[int, msgspec.Meta(ge=0)], st.integers(0, 99)),
    (Match, st.fixed_dictionaries({"text": st.text(), "score": st.floats(0, 1)})),
    (Colour, st.sampled_from(Colour)),
    (Point, st.builds(Point, st.floats(0, 1), st.floats(0, 1))),
    (Pair, st.builds(Pair, st.integers(0, 9), st.text())),
    (list[bytes], st.lists(st.binary(), max_size=3)),
    (Any, JSON),
    (object, JSON),
    (complex, JSON),
    (Optional[list["Match"]], st.none() | st.just([])),  # noqa: UP045 - as people write it
    (Match | Point, st.fixed_dictionaries({"text": st.text(), "score": st.floats(0, 1)})),
    (list[Match | Point], st.just([])),
    (dict[str, Match | Point], st.just({})),
    (Annotated[Match | Point, "note"], st.just({"x": 1.0})),
]


@given(st.data())
def test_values_of_a_hint_are_accepted(data: st.DataObject) -> None:
    """Every value of a type passes its schema, in the form that the validator gets."""
    hint, strategy = data.draw(st.sampled_from(HINTED))
    value = data.draw(strategy)
    assert accepts(hint, value), (hint, value, schema_of(hint, {}))


@pytest.mark.parametrize(
    ("hint", "wrong"),
    [
        (int, "1"), (int, 1.5), (str, 1), (bool, 1), (bytes, 3), (list[int], ["a"]), (dict[str, int], {"a": "b"}),
        (Match, {"text": "x"}), (Colour, "green"), (Literal["a"], "b"), (Annotated[int, msgspec.Meta(ge=0)], -1),
        (int | None, "x"), (numpy.ndarray, "text"), (numpy.ndarray | None, {"a": 1}), (numpy.float32, "x"),
        (list[int] | numpy.ndarray, "x"),
    ],
)  # fmt: skip
def test_other_values_are_refused(hint: Any, wrong: Any) -> None:
    """The gateway refuses them before a container runs."""
    assert not accepts(hint, wrong)


@pytest.mark.parametrize(
    "hint", [numpy.ndarray, numpy.typing.NDArray[numpy.float32], numpy.ndarray | None, "torch.Tensor"]
)
def test_an_array_is_accepted_typed_or_as_lists(hint: Any) -> None:
    """Its shape does not matter."""
    for value in (numpy.zeros((2, 3)), numpy.float32(3), [[1, 2], [3, 4]], 1.5, []):
        assert accepts(hint, value)
    assert schema_of(numpy.ndarray, {}) == ARRAY


def test_bounds_of_bytes_are_left_out() -> None:
    """The validator gets bytes as an empty string."""
    assert accepts(Annotated[bytes, msgspec.Meta(min_length=4)], b"abcd")


def test_numpy_scalars_are_numbers() -> None:
    """This holds where numpy's own classes are the hints."""
    assert schema_of(numpy.int64, {}) == {"type": "integer"}
    assert schema_of(numpy.float16, {}) == {"type": "number"}
    assert schema_of(numpy.bool_, {}) == {"type": "boolean"}
    assert schema_of(numpy.datetime64, {}) == {}


def test_named_types_are_described_once() -> None:
    """Types, recursive ones too, are referred to."""
    definitions: dict[str, Any] = {}
    assert schema_of(Tree, definitions) == {"$ref": "#/$defs/Tree"}
    assert definitions["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


def test_a_hint_that_cannot_be_evaluated_is_known_by_its_name() -> None:
    """An array is one by its name, and any other hint accepts anything."""
    assert schema_of("np.ndarray", {}) == ARRAY
    assert schema_of("NDArray[np.float32]", {}) == ARRAY
    assert schema_of("SomeClass", {}) == {}


def test_items_and_chunks_have_the_types_of_their_lists() -> None:
    """A batch is made of items, and a generator yields chunks."""
    assert item_of(list[str]) == (True, str)
    assert item_of(list) == (True, Any)
    assert item_of(Annotated[list[int], "note"]) == (True, int)
    assert item_of(Any) == (True, Any)
    assert item_of("Texts") == (True, Any)
    assert item_of(str)[0] is False
    assert chunk_of(collections.abc.Iterator[int]) is int
    assert chunk_of(collections.abc.AsyncGenerator[str, None]) is str
    assert chunk_of(Any) is Any
