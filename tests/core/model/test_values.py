"""Typed values on the wire."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_types_come_back_as_they_went(value: Any) -> None:
    """Round trip over the msgpack wire."""
    assert values.decode(values.encode(value)) == value


@pytest.mark.parametrize("dtype", [name for name in values.FORMATS if name != "bool"])
def test_numpy_arrays_keep_dtype_and_shape(dtype: str) -> None:
    """Every dtype, several dimensions, and the JSON view of it."""
    array = numpy.arange(6, dtype=dtype).reshape(2, 3)

    back = values.decode(values.encode({"a": array}))["a"]

    assert back.dtype == array.dtype
    assert (back == array).all()
    assert values.to_json(values.decode_opaque(values.encode(array))) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("kind", ["bfloat16", "a scalar", "empty", "a matrix"])
def test_torch_tensors_keep_dtype_and_shape(kind: str) -> None:
    """Scalars, empty ones and bfloat16 too."""
    import torch

    tensor = {
        "bfloat16": torch.arange(4).bfloat16(), "a scalar": torch.tensor(2.5), "empty": torch.empty(0, 3),
        "a matrix": torch.eye(3),
    }[kind]  # fmt: skip

    back = values.decode(values.encode(tensor))

    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


def test_big_endian_and_sliced_arrays_travel_by_value() -> None:
    """The wire is little-endian and contiguous whatever memory looks like."""
    array = numpy.arange(12, dtype=">i4").reshape(3, 4)[:, ::2]

    assert (values.decode(values.encode(array)) == array).all()


def test_bytes_are_bytes_and_base64_for_json() -> None:
    """Nothing is lost either way."""
    encoded = values.encode(b"\x00\xff")

    assert values.decode(encoded) == b"\x00\xff"
    assert values.to_json(values.decode_opaque(encoded)) == "AP8="


def test_what_cannot_travel_is_named() -> None:
    """An object is refused with its type, never pickled."""
    with pytest.raises(TypeError, match="a object cannot travel"):
        values.encode({"x": object()})


@pytest.mark.parametrize(
    "body",
    [b"", b"\x05\x00abc", b"\x00\x00", values.pack_array(1, "float32", (2,), b"123").data,
     values.pack_array(1, "object", (1,), b"12345678").data, values.pack_array(1, "int8", (-1,), b"").data],
)  # fmt: skip
def test_a_lying_array_is_refused(body: bytes) -> None:
    """Its length must match its header, and its dtype be known."""
    data = msgspec.msgpack.encode(msgspec.msgpack.Ext(1, body))

    with pytest.raises(BadInput):
        values.decode(data)
    with pytest.raises(BadInput):
        values.to_json(values.decode_opaque(data))


def test_unknown_extensions_are_refused() -> None:
    """Only arrays and tensors are extensions here."""
    with pytest.raises(BadInput, match="extension type 9"):
        values.decode(msgspec.msgpack.encode(msgspec.msgpack.Ext(9, b"")))


def test_depth_is_bounded_without_recursing() -> None:
    """A deeper value is refused before any other check."""
    deep: Any = 0
    for _ in range(200):
        deep = [deep]

    assert not values.depth_within(deep)
    assert values.depth_within([[[0]]])


def test_non_finite_numbers_become_null_for_json() -> None:
    """JSON has no NaN."""
    assert values.to_json([float("nan"), float("inf"), 1.5]) == [None, None, 1.5]


def test_an_instant_is_text_to_a_schema() -> None:
    """msgpack has a type of its own for it, which validators do not know."""
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)

    assert values.for_schema(values.decode_opaque(values.encode({"at": noon}))) == {"at": "2026-01-31T12:00:00+00:00"}
