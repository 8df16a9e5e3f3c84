"""What is done with the body of a call or of an answer, and how much of it at once."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, VersionRecord
from pilotlight_core.model.values import TooManyValues, ValueRoom, check_count, decode_opaque, to_json
from pilotlight_gateway.bodies import call_requests
from pilotlight_gateway.bodies.call_requests import BodyFormat, pack_arguments
from pilotlight_gateway.schemas.schema_validators import MOST_WORK, Validators
from pilotlight_gateway.tensors import infer_bodies
from pilotlight_gateway.tensors.infer_requests import InferCall, InferRequest, WantedOutput, infer_call
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor, written_tensors


class WorkBounds(NamedTuple):
    """How much is done with one body. What is more raises `TooManyValues`."""

    values: int | None
    """Its values; None: as many as its bytes can hold."""
    arrays: int
    """Lists and elements that its arrays become in JSON."""
    checks: int
    """Parts of its check against a schema (see `work_of`)."""


AT_ONCE_BYTES = 128 * 1024
"""Longer bodies go to a worker unseen: decoding this much takes 4 ms at worst."""
EXTENSIONS = frozenset((0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8))
"""First bytes of msgpack that is one extension, such as an array."""
AT_ONCE = WorkBounds(values=8_192, arrays=8_192, checks=200_000)
"""On the event loop: about 2 ms."""
IN_WORKER = WorkBounds(values=None, arrays=16 * 10**6, checks=MOST_WORK)
"""Ten million bytes as numbers, and their lists: about 2 s."""


def read_call(
    body: bytes, kind: BodyFormat, version: str, spec: FunctionSpec, validators: Validators, bounds: WorkBounds
) -> tuple[CallRequest, MethodSpec, bytes]:
    """Read the body of a request to call a function: the request without its arguments, its method, these as msgpack.

    Raises:
        BadInput: `bad_request` if it cannot be decoded, else naming the field.
        TooManyValues.
    """
    request = call_requests.read_call(body, kind, bounds.values)
    method = spec.method(request.method)
    given = dict.fromkeys(request.parameters, "parameters")
    validators.check_input(version, method, request.input, given, at_once=bounds.checks)
    without = msgspec.structs.replace(request, input={}, parameters={})
    return without, method, pack_arguments(request.input)


def output_json(
    output: bytes, version: str, method: MethodSpec | None, validators: Validators, bounds: WorkBounds
) -> bytes:
    """A function's output as JSON text, checked by the method's type hints (None: it is not checked).

    Raises:
        BadOutput: it cannot be decoded, does not match the hints, or JSON cannot hold it.
        TooManyValues.
    """
    value = _checked(output, version, method, validators, bounds)
    return _encode_json(value, bounds.arrays)


def check_output(output: bytes, version: str, method: MethodSpec, validators: Validators, bounds: WorkBounds) -> None:
    """Check a function's output by its type hints; raises as `output_json`."""
    if method.output_schema:
        _checked(output, version, method, validators, bounds)


def read_infer(body: bytes, json_bytes: int, method: MethodSpec, bounds: WorkBounds) -> InferCall:
    """The call that a request for tensors asks for; `json_bytes` 0: the body is an `InferRequest` as msgpack.

    Raises:
        BadInput: `bad_request` if it cannot be read, else naming what is wrong.
        TooManyValues.
    """
    if not json_bytes:
        return infer_call(msgspec.msgpack.decode(body, type=InferRequest), method, bounds.values)
    return infer_call(infer_bodies.read_infer(body, json_bytes, bounds.values), method, bounds.values)


def output_tensors(
    output: bytes,
    version: str,
    method: MethodSpec,
    wanted: tuple[WantedOutput, ...],
    validators: Validators,
    bounds: WorkBounds,
    *,
    binary: bool,
) -> list[WrittenTensor]:
    """A function's output as tensors, checked by the method's type hints.

    Raises:
        BadOutput: it cannot be decoded, does not match the hints, or is no tensors.
        BadInput: an output was asked for that it has not.
        TooManyValues.
    """
    value = _checked(output, version, method, validators, bounds)
    return written_tensors(value, method, wanted, bounds.values, binary=binary)


def _checked(output: bytes, version: str, method: MethodSpec | None, validators: Validators, bounds: WorkBounds) -> Any:
    try:
        value = decode_opaque(output) if output else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise BadOutput(f"The function's answer cannot be read: {error}.") from None
    if bounds.values is not None and len(output) > bounds.values:  # a value takes a byte at least
        check_count(bounds.values, value)
    if method is not None:
        validators.check_output(version, method, value, at_once=bounds.checks)
    return value


def _encode_json(value: Any, arrays: int) -> bytes:
    """JSON in which bytes are base64, NaN is null, and arrays are nested lists of `arrays` lists and elements at most.

    Raises:
        BadOutput: an array in it does not match its header, or is too many lists; only outputs have arrays.
        TooManyValues.
    """
    try:
        return _plain_json(value)
    except (TypeError, RecursionError):
        pass  # it has arrays, or keys that JSON does not have
    hook = partial(to_json, room=ValueRoom(arrays))
    try:
        try:
            return msgspec.json.Encoder(enc_hook=hook).encode(value)
        except (TypeError, RecursionError):  # keys that JSON does not have, such as None
            return msgspec.json.encode(hook(value))
    except BadInput as error:
        raise BadOutput(f"The function's answer cannot be read: {error.detail}") from None


_plain_json = msgspec.json.Encoder().encode
"""Of nearly all values: making an encoder with a hook takes longer than to encode a small one."""


class SmallBodies:
    """What is done with bodies on the event loop. All raise TooManyValues where that would take too long."""

    def __init__(self, validators: Validators) -> None:
        self._validators = validators

    def read_call(self, body: bytes, kind: BodyFormat, version: VersionRecord) -> tuple[CallRequest, MethodSpec, bytes]:
        """Read the request of a call: without its arguments, the method, and these as msgpack.

        Raises:
            BadInput: `bad_request` if it cannot be decoded, else naming the field.
        """
        if len(body) > AT_ONCE_BYTES:
            raise TooManyValues
        return read_call(body, kind, version.id, version.spec, self._validators, AT_ONCE)

    def output_json(self, output: bytes, version: str, method: MethodSpec | None) -> bytes:
        """A function's output as JSON text, checked by the hints of a version's method (None: unchecked).

        Raises:
            BadOutput: it cannot be decoded, does not match the hints, or is too large for JSON.
        """
        if len(output) > AT_ONCE_BYTES:
            raise TooManyValues
        return output_json(output, version, method, self._validators, AT_ONCE)

    def check_output(self, output: bytes, version: str, method: MethodSpec) -> None:
        """Check a function's output by its type hints; raises as `output_json`."""
        if not method.output_schema:
            return
        if len(output) > AT_ONCE_BYTES:
            raise TooManyValues
        check_output(output, version, method, self._validators, AT_ONCE)

    def read_infer(self, body: bytes, json_bytes: int, method: MethodSpec) -> InferCall:
        """The call that a request for tensors asks for; see the function. Bytes of tensors count for nothing.

        Raises:
            BadInput: `bad_request` if it cannot be read, else naming what is wrong.
        """
        if json_bytes > AT_ONCE_BYTES:
            raise TooManyValues
        return read_infer(body, json_bytes, method, AT_ONCE)

    def infer_call(self, request: InferRequest, method: MethodSpec) -> InferCall:
        """The same of a request that was read."""
        return infer_call(request, method, AT_ONCE.values)

    def output_tensors(
        self, output: bytes, version: str, method: MethodSpec, wanted: tuple[WantedOutput, ...], *, binary: bool
    ) -> list[WrittenTensor]:
        """A function's output as tensors, checked by the method's type hints; see the function. Of one array that goes
        as bytes nothing is walked over, however long it is.
        """
        if len(output) > AT_ONCE_BYTES and (output[0] not in EXTENSIONS or not binary or wanted):
            raise TooManyValues
        return output_tensors(output, version, method, wanted, self._validators, AT_ONCE, binary=binary)
