"""Encodes the results of calls as answers."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from pilotlight_core.model.api.call_api import CallResponse, Latency, Usage
from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.messages.agent_messages import Spent
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.units import NS_PER_MS, WHOLE_DEVICE
from pilotlight_core.model.values import decode_opaque, to_json
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.ledger.price_book import PriceBook, cost_text
from pilotlight_gateway.schemas.schema_validators import Validators

_json = msgspec.json.Encoder(enc_hook=to_json)
_msgpack = msgspec.msgpack.Encoder()
NIL = b"\xc0"


class TypedResponse(CallResponse, frozen=True, kw_only=True):
    """The last event of a stream with values in msgpack: `output` is null."""

    output_b64: str | None = None


class ChunkBody(msgspec.Struct, frozen=True):
    """The data of a chunk event."""

    seq: int
    value: Any


class TypedChunkBody(msgspec.Struct, frozen=True):
    """The data of a chunk event with its value in msgpack."""

    seq: int
    value_b64: str


def encode_json(value: Any) -> bytes:
    """JSON in which bytes are base64, NaN is null and arrays are nested lists.

    Raises:
        BadOutput: an array in it does not match its header; only functions' answers have arrays.
    """
    try:
        return _encode_json(value)
    except BadInput as error:
        raise BadOutput(f"The function's answer cannot be read: {error.detail}") from None


def _encode_json(value: Any) -> bytes:
    try:
        return _json.encode(value)
    except (TypeError, RecursionError):  # keys that JSON does not have, such as None
        return _json.encode(to_json(msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value))


def encode_msgpack(response: CallResponse, output: bytes) -> bytes:
    """The response with `output`, which is msgpack already."""
    return _msgpack.encode(msgspec.structs.replace(response, output=msgspec.Raw(output or NIL)))


def typed_response(response: CallResponse, output: bytes) -> TypedResponse:
    """The response of a stream with values in msgpack."""
    fields = {name: getattr(response, name) for name in CallResponse.__struct_fields__}
    return TypedResponse(**fields, output_b64=base64_text(output or NIL))


def checked_value(validators: Validators, call: PreparedCall, data: bytes, *, look: bool) -> Any:
    """A function's output, checked against its type hints.

    Args:
        look: decode it also where there is no schema; without one, None is returned otherwise.

    Raises:
        BadOutput: the output violates the schema, or cannot be decoded.
    """
    if not look and not call.method.output_schema:
        return None
    value = read_value(data)
    validators.check_output(call.version.id, call.method, value)
    return value


def read_value(data: bytes) -> Any:
    """A function's output, decoded.

    Raises:
        BadOutput: it cannot be decoded.
    """
    try:
        return decode_opaque(data) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise BadOutput(f"The function's answer cannot be read: {error}.") from None


def response_of(
    call: PreparedCall, result: CallResult, output: Any, *, book: PriceBook, at: float, request_id: str
) -> CallResponse:
    """The answer at the monotonic instant `at`; the stage `respond` is the time that no other stage has."""
    total = (at - call.arrived_at) * 1000
    stages = dict(result.stages)
    stages["respond"] = max(0.0, total - sum(stages.values()))
    return CallResponse(
        id=call.call_id,
        output=output,
        version=call.version.ref,
        usage=usage_of(result, book),
        latency=Latency(total_ms=total, stages=stages),
        cold_start=result.cold_start,
        request_id=request_id,
    )


def usage_of(result: CallResult, book: PriceBook) -> Usage:
    """What the call is billed; 0 if it was not metered."""
    spent = result.spent or Spent(ns=0, ppm=0, price="")
    return Usage(
        gpu_ms=spent.ns * spent.ppm / (WHOLE_DEVICE * NS_PER_MS),
        ns=spent.ns,
        ppm=spent.ppm,
        price=spent.price,
        cost=cost_text(spent.ns, spent.ppm, book.rate(spent.price)),
        currency=book.currency,
        batch_size=spent.batch_size,
        attempts=result.attempts,
    )


def is_value(call: PreparedCall) -> bool:
    """Whether the result has a value: a generator's values are in its chunks."""
    return call.method.mode is Mode.UNARY


def list_of(chunks: list[bytes]) -> bytes:
    """The msgpack of a list of values, each of which is msgpack."""
    return _msgpack.encode([msgspec.Raw(chunk) for chunk in chunks])


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
