"""The tensors that a function's answer becomes.

An array is one tensor, `output`. An object is a tensor for each of its names, several arrays in a list are `output_0`,
`output_1` and so on. Lists of numbers or texts are a tensor of their shape, and a scalar is one of one element.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.spec import MethodSpec
from pilotlight_core.model.values import MAX_DEPTH, TooManyValues, unpack_array
from pilotlight_gateway.tensors.datatypes import BYTES, DATATYPES, NARROW, WIDE, format_of
from pilotlight_gateway.tensors.infer_requests import WantedOutput
from pilotlight_gateway.tensors.tensor import (
    LONGEST_NAME,
    MOST_TENSORS,
    Tensor,
    flat_list,
    join_bytes,
    numbers_of,
    split_bytes,
    texts_of,
)
from pilotlight_gateway.tensors.value_kinds import OUTPUT, ValueKind, answer_kinds

ADVICE = "call POST /v1/functions/{ref}/calls, which answers anything"


class WrittenTensor(msgspec.Struct, frozen=True, array_like=True):
    """An output as it is sent: as bytes behind the JSON, or in it."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    binary: bool
    data: bytes
    """The elements' bytes, or the JSON of a flat list of them."""
    base64: bool = False
    """Whether that list is base64 of what is no text."""


def check_wanted(wanted: tuple[WantedOutput, ...], method: MethodSpec) -> None:
    """Refuse outputs that the schema says there are not, before anything runs. Raises BadInput."""
    known = answer_kinds(method)
    for output in wanted:
        if known and output.name not in known and not _is_numbered(output.name, known):
            raise _no_output(output.name, list(known))


def written_tensors(
    value: Any, method: MethodSpec, wanted: tuple[WantedOutput, ...], most: int | None, *, binary: bool
) -> list[WrittenTensor]:
    """An answer as the client wants it.

    Args:
        value: as `decode_opaque` reads it.
        wanted: the outputs that are named; () are all.
        most: elements that may be walked over.
        binary: how outputs go that are not named.

    Raises:
        BadOutput: it has no form as tensors. BadInput: an output was asked for that it has not. TooManyValues.
    """
    found = {tensor.name: tensor for tensor in tensors_of(value, method, most)}
    for output in wanted:
        if output.name not in found:
            raise _no_output(output.name, list(found))
    ways = {output.name: output.binary for output in wanted} or dict.fromkeys(found, binary)
    return [_written(found[name], most, binary=way) for name, way in ways.items()]


def tensors_of(value: Any, method: MethodSpec, most: int | None) -> list[Tensor]:
    """The tensors of an answer, or of a chunk. Raises BadOutput and TooManyValues."""
    kinds = answer_kinds(method)
    if value is None:
        return []
    if isinstance(value, dict):
        named = value
    elif isinstance(value, list) and value and all(isinstance(part, msgspec.msgpack.Ext) for part in value):
        named = {f"{OUTPUT}_{number}": part for number, part in enumerate(value)}
    else:
        named = {OUTPUT: value}
    if len(named) > MOST_TENSORS:
        raise BadOutput(f"The answer would be {len(named)} tensors, more than {MOST_TENSORS}: {ADVICE}.")
    return [_tensor(name, part, kinds.get(name), most) for name, part in named.items() if part is not None]


def _tensor(name: Any, part: Any, kind: ValueKind | None, most: int | None) -> Tensor:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise BadOutput(f"{str(name)[:40]!r} is no name of a tensor: expected 1 to {LONGEST_NAME} characters.")
    if isinstance(part, msgspec.msgpack.Ext):
        try:
            header, raw = unpack_array(memoryview(part.data))
        except BadInput as error:
            raise BadOutput(f"output.{name[:100]}: {error.detail}") from None
        return Tensor(name, DATATYPES[header.dtype], header.shape, bytes(raw))
    shape = _shape_of(part)
    count = math.prod(shape)
    if most is not None and count > most:
        raise TooManyValues
    try:
        flat = flat_list(part)
    except ValueError:
        flat = []
    if len(flat) != count:
        raise _no_tensor(name, "lists of different lengths stand in it")
    datatype = _datatype_of(name, flat, kind)
    return Tensor(name, datatype, shape, _packed(name, datatype, flat))


def _shape_of(part: Any) -> tuple[int, ...]:
    """By the first list of each depth; a scalar is one element."""
    shape: list[int] = []
    while isinstance(part, list) and len(shape) < MAX_DEPTH:
        shape.append(len(part))
        part = part[0] if part else None
    return tuple(shape) if shape else (1,)


def _datatype_of(name: str, flat: list[Any], kind: ValueKind | None) -> str:
    kinds = {type(element) for element in flat}
    if not kinds:
        return kind.shown_datatype if kind is not None else "FP64"
    if kinds <= {str, bytes}:
        return BYTES
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        if kind is not None and kind.datatype == "FP64":
            return "FP64"  # 2 of a function that promises floats
        return "UINT64" if max(flat) >= 2**63 else "INT64"
    if kinds <= {int, float}:
        return "FP64"
    odd = next(one for one in flat if type(one) not in (int, float))
    raise _no_tensor(name, f"a {type(odd).__name__} stands in it")


def _packed(name: str, datatype: str, flat: list[Any]) -> bytes:
    if datatype == BYTES:
        return join_bytes([element.encode() if isinstance(element, str) else element for element in flat])
    try:
        return struct.pack(f"<{len(flat)}{format_of(datatype)}", *flat)
    except (struct.error, OverflowError):
        raise _no_tensor(name, f"a number is out of the range of {datatype}") from None


def _written(tensor: Tensor, most: int | None, *, binary: bool) -> WrittenTensor:
    if binary:
        return WrittenTensor(tensor.name, tensor.datatype, tensor.shape, binary=True, data=tensor.data)
    is_base64 = False
    if tensor.datatype == BYTES:
        elements, is_base64 = texts_of(split_bytes(tensor, most))
        text = msgspec.json.encode(elements)
    else:
        text = msgspec.json.encode(numbers_of(tensor, most))
    datatype = WIDE[tensor.datatype] if tensor.datatype in NARROW else tensor.datatype
    return WrittenTensor(tensor.name, datatype, tensor.shape, binary=False, data=text, base64=is_base64)


def _is_numbered(name: str, known: dict[str, ValueKind]) -> bool:
    """Whether it may be an array of several: how many there are shows in the answer."""
    return OUTPUT in known and name.startswith(f"{OUTPUT}_")


def _no_output(name: str, known: list[str]) -> BadInput:
    there = ", ".join(known[:20]) or "none"
    return BadInput(f"outputs: there is no {name[:100]!r}; there are: {there}.", field="outputs")


def _no_tensor(name: str, why: str) -> BadOutput:
    return BadOutput(f"output.{name[:100]} is no tensor: {why}. Return arrays, lists of numbers or texts; or {ADVICE}.")
