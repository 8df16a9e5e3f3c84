"""From what a call came to, to the bytes of its answer."""

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
    """The last event of a stream whose values travel as msgpack: `output` is null."""

    output_b64: str | None = None


class ChunkBody(msgspec.Struct, frozen=True):
    """The data of a chunk event."""

    seq: int
    value: Any


class TypedChunkBody(msgspec.Struct, frozen=True):
    """The data of a chunk event where values travel as msgpack."""

    seq: int
    value_b64: str


def encode_json(value: Any) -> bytes:
    """JSON in which bytes are base64, NaN is null and arrays are nested lists.

    Raises:
        BadOutput: if an array in it is not what its header says: only a function's answer has arrays.
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
    """The response with an output that is msgpack already."""
    return _msgpack.encode(msgspec.structs.replace(response, output=msgspec.Raw(output or NIL)))


def typed_response(response: CallResponse, output: bytes) -> TypedResponse:
    """The response of a stream whose values travel as msgpack."""
    fields = {name: getattr(response, name) for name in CallResponse.__struct_fields__}
    return TypedResponse(**fields, output_b64=base64_text(output or NIL))


def checked_value(validators: Validators, call: PreparedCall, data: bytes, *, look: bool) -> Any:
    """What the function gave, once it was found to be what its type hints promise (`look`: even if they say nothing).

    Raises:
        BadOutput: if it is not, or cannot be read.
    """
    if not look and not call.method.output_schema:
        return None
    value = read_value(data)
    validators.check_output(call.version.id, call.method, value)
    return value


def read_value(data: bytes) -> Any:
    """What the function gave.

    Raises:
        BadOutput: if it cannot be read.
    """
    try:
        return decode_opaque(data) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise BadOutput(f"The function's answer cannot be read: {error}.") from None


def response_of(
    call: PreparedCall, result: CallResult, output: Any, *, book: PriceBook, at: float, request_id: str
) -> CallResponse:
    """The answer at the monotonic instant `at`; `respond` is what the other stages leave of the time."""
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
    """What the call is billed. A call whose container metered nothing costs nothing."""
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
    """Whether the result itself carries a value: a generator's are in its chunks."""
    return call.method.mode is Mode.UNARY


def list_of(chunks: list[bytes]) -> bytes:
    """The msgpack of the list of values that are msgpack each."""
    return _msgpack.encode([msgspec.Raw(chunk) for chunk in chunks])


def base64_text(data: bytes) -> str:
    """Base64 as text."""
    return base64.b64encode(data).decode()
