"""Requests and answers as HTTP bodies: JSON, and behind it the bytes of tensors in their order."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.tensors.datatypes import BYTES, NARROW
from pilotlight_gateway.tensors.infer_requests import BINARY, InferRequest, WantedOutput
from pilotlight_gateway.tensors.tensor import Tensor, check_shape, flat_list, join_bytes, pack_numbers
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor

HEADER_LENGTH = b"inference-header-content-length"
SHARED = "shared_memory_region"
SIZE = "binary_data_size"


class InferInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tensor of a request."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    parameters: dict[str, Any] = {}
    data: Any = msgspec.UNSET


class InferOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class InferBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON of a request."""

    inputs: list[InferInput]
    id: str = ""
    parameters: dict[str, Any] = {}
    outputs: list[InferOutput] = []


_decoder = msgspec.json.Decoder(InferBody)


def read_infer(body: bytes, json_bytes: int, most: int | None) -> InferRequest:
    """The request in a body, whose first `json_bytes` are JSON.

    Raises:
        BadInput: `bad_request` if it cannot be read, else naming what is wrong.
        TooManyValues: it has more than `most` elements in JSON.
    """
    try:
        said = _decoder.decode(memoryview(body)[:json_bytes])
    except msgspec.ValidationError as error:
        raise BadInput(f"The request does not match the protocol: {error}.", code="bad_request") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"The request is not JSON: {error}.", code="bad_request") from None
    except RecursionError:
        raise BadInput("The request is nested too deep.", code="bad_request") from None
    binary = said.parameters.get(BINARY) is True
    tensors, at, left = [], json_bytes, most
    for one in said.inputs:
        size = _binary_size(one, len(body) - at)
        if size is None:
            tensor = _of_json(one, left)
            if left is not None:
                left = max(0, left - tensor.elements)
        else:
            tensor = Tensor(one.name, one.datatype, one.shape, body[at : at + size])
            at += size
        tensors.append(tensor)
    if at != len(body):
        raise BadInput(f"{len(body) - at} bytes are behind the last tensor.", code="bad_request")
    wanted = tuple(_wanted(one, binary=binary) for one in said.outputs)
    return InferRequest(id=said.id, tensors=tuple(tensors), parameters=said.parameters, wanted=wanted, binary=binary)


def infer_answer(
    model: str, version: str, client_id: str, outputs: list[WrittenTensor]
) -> tuple[list[bytes], int | None]:
    """The body of an answer in pieces, and the bytes of its JSON; None: it is nothing else."""
    said: dict[str, Any] = {"model_name": model, "model_version": version}
    if client_id:
        said["id"] = client_id
    said["outputs"] = [_output(one) for one in outputs]
    text, binary = msgspec.json.encode(said), [one.data for one in outputs if one.binary]
    return [text, *binary], len(text) if binary else None


def _output(one: WrittenTensor) -> dict[str, Any]:
    told: dict[str, Any] = {"name": one.name, "datatype": one.datatype, "shape": one.shape}
    if one.binary:
        return told | {"parameters": {SIZE: len(one.data)}}
    if one.base64:
        told["parameters"] = {"content_type": "base64"}
    return told | {"data": msgspec.Raw(one.data)}


def _binary_size(one: InferInput, left: int) -> int | None:
    """The bytes of a tensor behind the JSON; None: its data is in there."""
    if SHARED in one.parameters:
        raise _shared(f"inputs.{one.name[:100]}")
    size = one.parameters.get(SIZE)
    if size is None:
        return None
    if type(size) is not int or not 0 <= size <= left:
        raise BadInput(
            f"inputs.{one.name[:100]}: {SIZE} is {str(size)[:20]}, and {left} bytes are left of the body.",
            field=f"inputs.{one.name[:100]}",
        )
    if one.data is not msgspec.UNSET:
        raise BadInput(f"inputs.{one.name[:100]}: it has both data and {SIZE}.", field=f"inputs.{one.name[:100]}")
    return size


def _of_json(one: InferInput, most: int | None) -> Tensor:
    check_shape(one.name, one.datatype, one.shape)
    tensor = Tensor(one.name, one.datatype, one.shape, b"")
    if most is not None and tensor.elements > most:
        raise TooManyValues
    if one.data is msgspec.UNSET:
        raise _wrong(one, f"expected data, or {SIZE}")
    if one.datatype in NARROW:
        raise _wrong(one, f"{one.datatype} comes as bytes only: send {SIZE} and the bytes behind the JSON")
    try:
        flat = flat_list(one.data)
    except ValueError:
        raise _wrong(one, "lists and numbers stand side by side in its data") from None
    if len(flat) != tensor.elements:
        raise _wrong(one, f"its shape has {tensor.elements} elements, and its data {len(flat)}")
    if one.datatype != BYTES:
        return Tensor(one.name, one.datatype, one.shape, pack_numbers(one.name, one.datatype, flat))
    if not all(isinstance(element, str) for element in flat):
        raise _wrong(one, "BYTES in JSON are strings")
    return Tensor(one.name, BYTES, one.shape, join_bytes([element.encode() for element in flat]))


def _wanted(one: InferOutput, *, binary: bool) -> WantedOutput:
    if SHARED in one.parameters:
        raise _shared(f"outputs.{one.name[:100]}")
    if one.parameters.get("classification"):
        raise BadInput(
            f"outputs.{one.name[:100]}: classification is not offered: have the function return classes.",
            field=f"outputs.{one.name[:100]}",
        )
    asked = one.parameters.get("binary_data", binary)
    if type(asked) is not bool:
        raise BadInput(f"outputs.{one.name[:100]}: binary_data is true or false.", field=f"outputs.{one.name[:100]}")
    return WantedOutput(one.name, asked)


def _wrong(one: InferInput, why: str) -> BadInput:
    return BadInput(f"inputs.{one.name[:100]}: {why}.", field=f"inputs.{one.name[:100]}")


def _shared(field: str) -> BadInput:
    return BadInput(f"{field}: there is no shared memory with clients: send the tensor in the body.", field=field)
