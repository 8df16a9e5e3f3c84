"""One tensor: what its bytes must be, and what walks over them is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.tensors.tensor import (
    Tensor,
    check_tensor,
    flat_list,
    join_bytes,
    nested_list,
    numbers_of,
    pack_numbers,
    split_bytes,
    texts_of,
)


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "why"),
    [
        ("FP32", (2,), b"1234", "has 8 bytes, and there are 4"),
        ("FP8", (1,), b"1", "is not known"),
        ("INT8", (-1,), b"", "the shape"),
        ("INT8", (1,) * 65, b"1", "the shape"),
        ("INT8", (10**9, 0), b"", "too many places"),
        ("BYTES", (2,), b"\0\0\0\0", "do not hold 2"),
        ("BYTES", (1,), b"\5\0\0\0ab", "longer than the bytes"),
        ("BYTES", (1,), b"\1\0\0\0ab", "1 bytes are behind"),
        ("BYTES", (10**15,), b"", "do not hold"),
    ],
)
def test_bytes_that_contradict_the_shape_are_refused(
    datatype: str, shape: tuple[int, ...], data: bytes, why: str
) -> None:
    """By name, before anything is made of them."""
    with pytest.raises(BadInput, match=rf"inputs.x: .*{why}"):
        check_tensor(Tensor("x", datatype, shape, data), None)


def test_few_elements_are_walked_over_at_once() -> None:
    """More are for a worker; numbers as bytes are not walked over at all."""
    many = Tensor("x", "BYTES", (3,), join_bytes([b"a", b"", b"ccc"]))
    assert split_bytes(many, 3) == [b"a", b"", b"ccc"]
    with pytest.raises(TooManyValues):
        check_tensor(many, 2)
    with pytest.raises(TooManyValues):
        numbers_of(Tensor("x", "INT8", (3,), b"123"), 2)
    check_tensor(Tensor("x", "INT8", (3,), b"123"), 2)


def test_bfloat16_is_the_upper_half_of_a_float() -> None:
    """1.5 and -2."""
    assert numbers_of(Tensor("x", "BF16", (2,), b"\xc0\x3f\x00\xc0"), None) == [1.5, -2.0]


@pytest.mark.parametrize(
    ("datatype", "numbers"),
    [("INT8", [128]), ("UINT8", [-1]), ("INT64", [1.0]), ("BOOL", [1]), ("FP32", ["1"]), ("FP32", [True]),
     ("FP32", [1e300]), ("FP16", [1.0]), ("INT32", [None])],
)  # fmt: skip
def test_numbers_are_of_their_datatype(datatype: str, numbers: list[Any]) -> None:
    """Nothing is rounded, cut off, or made a number of."""
    with pytest.raises(BadInput, match=r"inputs\.x"):
        pack_numbers("x", datatype, numbers)


def test_lists_are_flat_or_nested_by_the_shape() -> None:
    """Row-major; lists beside numbers are an error."""
    assert flat_list([[1, 2], [3, 4]]) == flat_list([1, 2, 3, 4]) == [1, 2, 3, 4]
    assert flat_list(5) == [5]
    for wrong in ([[1], 2], [1, [2]], [[[1]], [2]]):
        with pytest.raises(ValueError):
            flat_list(wrong)
    assert nested_list([1, 2, 3, 4], (2, 2)) == [[1, 2], [3, 4]]
    assert nested_list([], (2, 0)) == [[], []]
    assert nested_list([1], ()) == 1


def test_what_is_no_text_is_base64() -> None:
    """All elements then, so that a client knows what it reads."""
    assert texts_of([b"a", "ü".encode()]) == (["a", "ü"], False)
    assert texts_of([b"a", b"\xff"]) == (["YQ==", "/w=="], True)
