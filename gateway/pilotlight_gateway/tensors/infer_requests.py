"""A request of the Open Inference Protocol, over HTTP or gRPC, and the call that it stands for.

Tensors are arguments by their names. What a parameter is, its schema says: an array takes the tensor as it is, lists
and scalars take its elements. A named parameter of the request that is none of the protocol's is an argument too.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import MethodSpec, Priority
from pilotlight_core.model.values import LISTS_PER_ELEMENT, MAX_LISTS, list_count
from pilotlight_gateway.tensors.datatypes import BYTES
from pilotlight_gateway.tensors.tensor import (
    MOST_TENSORS,
    Tensor,
    array_of,
    check_tensor,
    nested_list,
    numbers_of,
    split_bytes,
)
from pilotlight_gateway.tensors.value_kinds import UNKNOWN, ValueForm, ValueKind, parameter_kinds

LONGEST_ID = 256
MOST_PARAMETERS = 64
SEQUENCE = ("sequence_id", "sequence_start", "sequence_end")
FINAL = "triton_enable_empty_final_response"
BINARY = "binary_data_output"
OF_PROTOCOL = frozenset(("priority", "timeout", BINARY, FINAL, *SEQUENCE))
PRIORITIES = {1: Priority.INTERACTIVE, 2: Priority.STANDARD}
"""0 is the function's own, 1 the highest; from 3 on there is no lower one than batch."""


class WantedOutput(msgspec.Struct, frozen=True, array_like=True):
    """An output that the client asks for."""

    name: str
    binary: bool


class InferRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What came, before its function's schema says what it is."""

    id: str = ""
    tensors: tuple[Tensor, ...] = ()
    parameters: dict[str, Any] = {}
    wanted: tuple[WantedOutput, ...] = ()
    """Empty: all outputs."""
    binary: bool = False
    """Whether outputs that are not named go as bytes."""


class InferCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call that a request stands for."""

    id: str
    """The client's name for it, which its answer repeats."""
    body: bytes
    """The `CallRequest`, as msgpack."""
    priority: str = ""
    """The class that it asks for; "": the function's."""
    wanted: tuple[WantedOutput, ...] = ()
    binary: bool = False
    tells_end: bool = False
    """Whether a stream ends with an answer that says so."""


_encode = msgspec.msgpack.Encoder().encode


def infer_call(request: InferRequest, method: MethodSpec, most: int | None) -> InferCall:
    """The call that `request` asks of a method.

    Raises:
        BadInput: naming what is wrong. TooManyValues: more than `most` elements would have to be read.
    """
    if len(request.id) > LONGEST_ID:
        raise BadInput(f"id: expected at most {LONGEST_ID} characters.", field="id")
    kinds = parameter_kinds(method)
    parameters = checked_parameters(request.parameters)
    arguments = _named_arguments(parameters, kinds, open_ended=not method.input_schema)
    for argument, value in tensor_arguments(request.tensors, kinds, most).items():
        if argument in arguments:
            raise BadInput(f"{argument!r} stands in both inputs and parameters.", field=f"parameters.{argument}")
        arguments[argument] = value
    said: dict[str, Any] = {"input": arguments, "method": method.name or None}
    if (timeout_us := _count(parameters, "timeout")) > 0:
        said["deadline_ms"] = timeout_us / 1000
    try:
        body = _encode(said)
    except (OverflowError, TypeError, RecursionError) as error:
        raise BadInput(f"parameters: they cannot travel: {error}.", field="parameters") from None
    return InferCall(
        id=request.id,
        body=body,
        priority=_priority(_count(parameters, "priority")),
        wanted=request.wanted,
        binary=request.binary,
        tells_end=parameters.get(FINAL) is True,
    )


def checked_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The request's parameters. Raises BadInput: there are too many, or sequences, which functions have none of."""
    if len(parameters) > MOST_PARAMETERS:
        raise BadInput(f"parameters: expected at most {MOST_PARAMETERS}.", field="parameters")
    for name in SEQUENCE:
        if parameters.get(name):
            raise BadInput(
                f"parameters.{name}: functions keep nothing between requests, so there are no sequences: leave it out.",
                field=f"parameters.{name}",
            )
    return parameters


def tensor_arguments(tensors: tuple[Tensor, ...], kinds: dict[str, ValueKind], most: int | None) -> dict[str, Any]:
    """The arguments that tensors stand for. Raises as `infer_call`."""
    if len(tensors) > MOST_TENSORS:
        raise BadInput(f"inputs: expected at most {MOST_TENSORS} tensors.", field="inputs")
    arguments: dict[str, Any] = {}
    left = most
    for tensor in tensors:
        if tensor.name in arguments:
            raise BadInput(f"inputs: there are two of the name {tensor.name[:100]!r}.", field="inputs")
        check_tensor(tensor, left)
        kind = kinds.get(tensor.name, UNKNOWN)
        arguments[tensor.name] = _argument(tensor, kind, left)
        if left is not None and (tensor.datatype == BYTES or kind.form in (ValueForm.LIST, ValueForm.SCALAR)):
            left = max(0, left - tensor.elements)
    return arguments


def _argument(tensor: Tensor, kind: ValueKind, most: int | None) -> Any:
    if kind.form is ValueForm.OBJECT:
        raise _not(tensor, "takes an object, which is no tensor: call POST /v1/functions/{ref}/calls")
    is_text = tensor.datatype == BYTES
    if kind.datatype and is_text is not (kind.datatype == BYTES):
        raise _not(tensor, f"takes {kind.datatype}, and {tensor.datatype} came")
    if kind.form is ValueForm.ARRAY:
        if is_text:
            raise _not(tensor, "takes an array of numbers, and BYTES came")
        if kind.datatype and tensor.datatype != kind.datatype:
            raise _not(tensor, f"takes {kind.datatype}, and {tensor.datatype} came")
        return array_of(tensor)
    if kind.form is ValueForm.ANY and not is_text:
        return array_of(tensor)
    if kind.form is ValueForm.SCALAR and tensor.elements != 1:
        raise _not(tensor, f"takes one element, and {tensor.elements} came")
    if list_count(tensor.shape) > max(MAX_LISTS, LISTS_PER_ELEMENT * tensor.elements):
        raise _not(tensor, "takes lists, and its shape would be too many of them: squeeze it")
    elements = _texts(tensor, kind, most) if is_text else numbers_of(tensor, most)
    if not is_text and any(isinstance(one, float) and not math.isfinite(one) for one in elements):
        raise _not(tensor, "takes finite numbers")
    return elements[0] if kind.form is ValueForm.SCALAR else nested_list(elements, tensor.shape)


def _texts(tensor: Tensor, kind: ValueKind, most: int | None) -> list[Any]:
    elements = split_bytes(tensor, most)
    if not kind.is_text:
        return elements
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError:
        if kind.form is ValueForm.ANY:
            return elements
        raise _not(tensor, "takes text, and an element is no UTF-8") from None


def _named_arguments(parameters: dict[str, Any], kinds: dict[str, ValueKind], *, open_ended: bool) -> dict[str, Any]:
    """Those parameters of the request that are arguments."""
    found = {name: value for name, value in parameters.items() if name not in OF_PROTOCOL}
    for name in found:
        if name not in kinds and not open_ended:
            known = ", ".join(kinds) or "no parameters"
            raise BadInput(f"parameters.{name[:100]}: the function has no such parameter; it has {known}.",
                           field=f"parameters.{name[:100]}")  # fmt: skip
    return found


def _count(parameters: dict[str, Any], name: str) -> int:
    """A parameter that counts; 0 if it is absent."""
    value = parameters.get(name, 0)
    if type(value) is not int or value < 0:
        raise BadInput(f"parameters.{name}: expected a number from 0 on.", field=f"parameters.{name}")
    return value


def _priority(level: int) -> str:
    return str(PRIORITIES.get(level, Priority.BATCH)) if level else ""


def _not(tensor: Tensor, why: str) -> BadInput:
    name = tensor.name[:100]
    return BadInput(f"inputs.{name}: it {why}.", field=f"inputs.{name}")
