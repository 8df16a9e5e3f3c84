"""One tensor: its name, datatype and shape, and the bytes of its elements, which nothing here reads without need.

Whatever walks over elements takes a bound, and raises TooManyValues beyond it: event loops walk over few.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import MAX_EMPTY, MAX_SIDES, NDARRAY, TooManyValues, pack_array
from pilotlight_gateway.tensors.datatypes import BYTES, DTYPES, NARROW, format_of, is_datatype, width_of

LENGTH = struct.Struct("<I")
MOST_TENSORS = 256
"""Of one request, or of one answer."""
LONGEST_NAME = 256
FLOATS = frozenset(("FP32", "FP64"))


class Tensor(msgspec.Struct, frozen=True, array_like=True):
    """`data`: the elements, little-endian and row-major; of BYTES each behind its length."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def check_tensor(tensor: Tensor, most: int | None) -> None:
    """Refuse a tensor whose bytes are not what its datatype and shape say.

    Raises:
        BadInput: naming it. TooManyValues: BYTES are more than `most`.
    """
    check_shape(tensor.name, tensor.datatype, tensor.shape)
    if tensor.datatype == BYTES:
        if tensor.elements > len(tensor.data) // LENGTH.size:
            raise _wrong(tensor.name, f"{len(tensor.data)} bytes do not hold {tensor.elements} elements")
        split_bytes(tensor, most)
        return
    expected = tensor.elements * width_of(tensor.datatype)
    if len(tensor.data) != expected:
        what = f"{tensor.datatype} of shape {list(tensor.shape)[:8]} has {expected} bytes"
        raise _wrong(tensor.name, f"{what}, and there are {len(tensor.data)}")


def check_shape(name: str, datatype: str, shape: tuple[int, ...]) -> None:
    """Refuse what no tensor is. Raises BadInput, naming it."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise BadInput(f"inputs: a name has 1 to {LONGEST_NAME} characters.", field="inputs")
    if not is_datatype(datatype):
        known = ", ".join((*DTYPES, BYTES))
        raise _wrong(name, f"the datatype {datatype[:40]!r} is not known; there are {known}")
    if len(shape) > MAX_SIDES or any(side < 0 for side in shape):
        raise _wrong(name, f"the shape {list(shape)[:8]} is none")
    nonzero = [side for side in shape if side]
    if len(nonzero) < len(shape) and math.prod(nonzero) > MAX_EMPTY:
        raise _wrong(name, f"the shape {list(shape)[:8]} has no elements, and too many places for them")


def split_bytes(tensor: Tensor, most: int | None) -> list[bytes]:
    """The elements of BYTES.

    Raises:
        BadInput: their lengths do not add up. TooManyValues: they are more than `most`.
    """
    _check_room(tensor.elements, most)
    data, found, at = tensor.data, [], 0
    for _ in range(tensor.elements):
        if at + LENGTH.size > len(data):
            raise _wrong(tensor.name, "its bytes end before its last element")
        (length,) = LENGTH.unpack_from(data, at)
        at += LENGTH.size
        if at + length > len(data):
            raise _wrong(tensor.name, "an element is longer than the bytes that are left")
        found.append(data[at : at + length])
        at += length
    if at != len(data):
        raise _wrong(tensor.name, f"{len(data) - at} bytes are behind its last element")
    return found


def join_bytes(elements: list[bytes]) -> bytes:
    """The data of BYTES."""
    return b"".join(part for element in elements for part in (LENGTH.pack(len(element)), element))


def array_of(tensor: Tensor) -> msgspec.msgpack.Ext:
    """A tensor of numbers as an array of the wire."""
    return pack_array(NDARRAY, DTYPES[tensor.datatype], tensor.shape, tensor.data)


def numbers_of(tensor: Tensor, most: int | None) -> list[Any]:
    """The elements of a tensor of numbers, flat. Raises TooManyValues."""
    count = tensor.elements
    _check_room(count, most)
    read = struct.unpack(f"<{count}{format_of(tensor.datatype)}", tensor.data)
    if tensor.datatype != "BF16":
        return list(read)
    # bfloat16 is the upper half of a float32.
    return list(struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(half << 16 for half in read))))


def pack_numbers(name: str, datatype: str, numbers: list[Any]) -> bytes:
    """The data of a tensor of these numbers.

    Raises:
        BadInput: one of them is none of that datatype.
    """
    if datatype in NARROW:
        raise _wrong(name, f"{datatype} comes as bytes only: send it in the binary part")
    kinds = (bool,) if datatype == "BOOL" else (int, float) if datatype in FLOATS else (int,)
    for number in numbers:
        if type(number) not in kinds:
            raise _wrong(name, f"{str(number)[:40]!r} is no {datatype}")
    try:
        return struct.pack(f"<{len(numbers)}{format_of(datatype)}", *numbers)
    except (struct.error, OverflowError):
        raise _wrong(name, f"an element is out of the range of {datatype}") from None


def flat_list(data: Any) -> list[Any]:
    """The elements of nested lists in their order; a value that is no list is one element.

    Raises:
        ValueError: lists and other values stand side by side.
    """
    level = data if isinstance(data, list) else [data]
    while level and isinstance(level[0], list):
        inner: list[Any] = []
        for part in level:
            if not isinstance(part, list):
                raise ValueError
            inner += part
        level = inner
    if any(isinstance(part, list) for part in level):
        raise ValueError
    return level


def nested_list(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """The elements as lists in lists; without a shape, the one element."""
    for axis in range(len(shape) - 1, 0, -1):
        if side := shape[axis]:
            flat = [flat[i : i + side] for i in range(0, len(flat), side)]
        else:
            flat = [[] for _ in range(math.prod(shape[:axis]))]
    return flat if shape else flat[0]


def texts_of(elements: list[bytes]) -> tuple[list[str], bool]:
    """Elements of BYTES as JSON has them, and whether they are base64: one of them is no UTF-8."""
    try:
        return [element.decode() for element in elements], False
    except UnicodeDecodeError:
        return [base64.b64encode(element).decode() for element in elements], True


def _check_room(count: int, most: int | None) -> None:
    if most is not None and count > most:
        raise TooManyValues


def _wrong(name: str, why: str) -> BadInput:
    return BadInput(f"inputs.{name[:100]}: {why}.", field=f"inputs.{name[:100]}")
