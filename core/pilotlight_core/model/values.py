"""Typed values on the wire: JSON types, bytes, numpy arrays and torch tensors, never a pickle.

In msgpack an array is an extension type whose body is a header (dtype, shape) and the raw little-endian, row-major
data; bytes are msgpack bytes. Platform processes never decode arrays: they pass extensions on unopened
(`decode_opaque`), and convert them to nested lists for JSON callers (`to_json`).
"""

from __future__ import annotations

import base64
import math
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput

NDARRAY = 1
TENSOR = 2
MAX_EMPTY = 100_000
"""The product of the sides before the first 0 in the shape of an array without elements."""
MAX_SIDES = 64
MAX_LISTS = 1_024
LISTS_PER_ELEMENT = 4
"""An array's nested form has at most 1,024 lists, or four for each element if these are more: sides of 0 and 1 cost
nothing in a shape, and a list each in JSON."""
MAX_DEPTH = 64

FORMATS = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
"""dtype -> struct format. bfloat16 is supported too, as two raw bytes per element."""


class ArrayHeader(msgspec.Struct, frozen=True, array_like=True):
    dtype: str
    shape: tuple[int, ...]


class TooManyValues(Exception):
    """A value stands for more lists and elements than its reader has room for."""


@dataclass
class ValueRoom:
    """The lists and elements of arrays that may still become JSON."""

    left: int

    def take(self, values: int) -> None:
        """Raises TooManyValues."""
        self.left -= values
        if self.left < 0:
            raise TooManyValues


_header_encoder = msgspec.msgpack.Encoder()
_header_decoder = msgspec.msgpack.Decoder(ArrayHeader)


def pack_array(code: int, dtype: str, shape: tuple[int, ...], data: bytes) -> msgspec.msgpack.Ext:
    """The extension that stands for an array: `data` is its elements, little-endian and row-major."""
    header = _header_encoder.encode(ArrayHeader(dtype, shape))
    return msgspec.msgpack.Ext(code, struct.pack("<H", len(header)) + header + data)


def unpack_array(data: memoryview) -> tuple[ArrayHeader, memoryview]:
    """The header and the raw bytes of an array extension.

    Raises:
        BadInput: if its length contradicts its header, or its dtype is unknown.
    """
    view = data
    try:
        (length,) = struct.unpack_from("<H", view)
        header = _header_decoder.decode(view[2 : 2 + length])
    except (struct.error, msgspec.DecodeError) as error:
        raise BadInput(f"an array cannot be read: {error}.", field="input") from error
    raw = view[2 + length :]
    width = 2 if header.dtype == "bfloat16" else struct.calcsize(FORMATS.get(header.dtype, "0s"))
    sound = (
        len(header.shape) <= MAX_SIDES
        and all(side >= 0 for side in header.shape)
        and (len(raw) > 0 or math.prod(takewhile(bool, header.shape)) <= MAX_EMPTY)
    )
    if not width or not sound or math.prod(header.shape) * width != len(raw):
        raise BadInput(
            f"an array of dtype {header.dtype} and shape {header.shape[:8]} has {len(raw)} bytes.", field="input"
        )
    return header, raw


def _encode_hook(value: Any) -> Any:
    # torch and numpy are never imported here: a process with such a value has imported them.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        raw = tensor.view(torch.uint8) if tensor.numel() and tensor.dim() else tensor.reshape(-1).view(torch.uint8)
        return pack_array(TENSOR, dtype, tuple(tensor.shape), raw.numpy().tobytes())
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            array = numpy.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
            return pack_array(NDARRAY, value.dtype.name, value.shape, array.tobytes())
        if isinstance(value, numpy.generic):
            return value.item()
    raise TypeError(
        f"a {type(value).__qualname__} cannot travel: send JSON types, bytes, numpy arrays or torch tensors"
    )


def _decode_hook(code: int, data: memoryview) -> Any:
    if code not in (NDARRAY, TENSOR):
        raise BadInput(f"extension type {code} is not known.", field="input")
    header, raw = unpack_array(data)
    if code == NDARRAY:
        import numpy

        return numpy.frombuffer(raw, dtype=header.dtype).reshape(header.shape).copy()
    import torch

    dtype = getattr(torch, header.dtype)
    if not len(raw):
        return torch.empty(header.shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=dtype).reshape(header.shape)


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_hook)
_decoder = msgspec.msgpack.Decoder(ext_hook=_decode_hook)


def encode(value: Any) -> bytes:
    """The msgpack of `value`.

    Raises:
        TypeError: if a part of it has no encoding.
    """
    return _encoder.encode(value)


def decode(data: bytes) -> Any:
    """The value in `data`, with arrays as numpy arrays and torch tensors. For guests and clients only.

    Raises:
        msgspec.DecodeError, BadInput: if it cannot be read.
    """
    return _decoder.decode(data)


decode_opaque: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode
"""The value in its argument with arrays left as `msgspec.msgpack.Ext`, for platform processes."""


def to_json(value: Any, room: ValueRoom | None = None) -> Any:
    """An opaque value as JSON types: bytes become base64, arrays nested lists, for which `room` must suffice.

    Raises:
        BadInput: an array cannot be read, or has too many lists for its elements.
        TooManyValues: by `room`.
    """
    if isinstance(value, msgspec.msgpack.Ext):
        header, raw = unpack_array(memoryview(value.data))
        lists, elements = list_count(header.shape), math.prod(header.shape)
        if lists > max(MAX_LISTS, LISTS_PER_ELEMENT * elements):
            raise BadInput(
                f"an array of {elements} elements and shape {header.shape[:8]} would be {lists} lists in JSON: squeeze"
                f" it, or ask for application/msgpack.", field="input",
            )  # fmt: skip
        if room is not None:
            room.take(lists + elements)
        return _nested(header, raw)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): to_json(item, room) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item, room) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def list_count(shape: tuple[int, ...]) -> int:
    """The lists in the nested form of an array."""
    lists, count = 0, 1
    for side in shape:
        lists += count
        count *= side
    return lists


def check_count(most: int, *values: Any) -> None:
    """Count the parts of opaque values; counting stops where it is decided.

    Raises:
        TooManyValues: they are more than `most`.
    """
    left = most - len(values)
    open_values = list(values)
    while open_values:
        part = open_values.pop()
        if isinstance(part, dict):
            part = part.values()
        elif not isinstance(part, list):
            continue
        left -= len(part)
        if left < 0:
            raise TooManyValues
        open_values += part


def for_schema(value: Any) -> Any:
    """An opaque value as input of a JSON Schema validator: bytes and instants as a string, an array as an empty list.

    NaN and the infinities, which JSON lacks, become the numbers 0 and the largest ones.
    """
    if isinstance(value, msgspec.msgpack.Ext):
        return []
    if isinstance(value, bytes):
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): for_schema(item) for key, item in value.items()}
    if isinstance(value, list):
        return [for_schema(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0 if math.isnan(value) else math.copysign(sys.float_info.max, value)
    return value


def depth_within(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether nesting stays within `limit`; recursion stops there."""
    if limit < 0:
        return False
    if isinstance(value, dict):
        return all(depth_within(item, limit - 1) for item in value.values())
    if isinstance(value, list):
        return all(depth_within(item, limit - 1) for item in value)
    return True


def _nested(header: ArrayHeader, raw: memoryview) -> Any:
    if header.dtype == "bfloat16":  # the upper half of a float32
        halves = [half << 16 for half in struct.unpack(f"<{len(raw) // 2}H", raw)]
        flat: list[Any] = list(struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *halves)))
    else:
        count = math.prod(header.shape)
        flat = list(struct.unpack(f"<{count}{FORMATS[header.dtype]}", raw))
    for axis in range(len(header.shape) - 1, 0, -1):
        if side := header.shape[axis]:
            flat = [flat[i : i + side] for i in range(0, len(flat), side)]
        else:
            flat = [[] for _ in range(math.prod(header.shape[:axis]))]
    return flat if header.shape else flat[0]
