"""Encodes the results of calls as answers."""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec

from pilotlight_core.model.api.call_api import CallResponse, JobStatus, Latency, Usage, UsagePart
from pilotlight_core.model.devices import CORE_PRICE, MEMORY_PRICE
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.price_book import PriceBook, pico_cost, pico_text
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.units import NS_PER_MS, WHOLE_DEVICE
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall

_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
NIL = b"\xc0"
NULL = b"null"
HOLE = f'"{token()}"'.encode()
"""Stands in JSON where a long value comes: nobody else knows it."""


class TypedResponse(CallResponse, frozen=True, kw_only=True):
    """The last event of a stream with values in msgpack: `output` is null."""

    output_b64: str | None = None


def json_around(make: Callable[[msgspec.Raw], msgspec.Struct], value: list[bytes]) -> list[bytes]:
    """The JSON of a struct that `make` makes of the JSON of one of its fields, both in pieces."""
    if len(value) == 1:
        return [_json.encode(make(msgspec.Raw(value[0])))]
    before, _, after = _json.encode(make(msgspec.Raw(HOLE))).partition(HOLE)
    return [before, *value, after]


def encode_json(response: CallResponse) -> bytes:
    """The response, with its output if it has one."""
    return _json.encode(response)


def encode_msgpack(response: CallResponse | JobStatus, output: bytes) -> bytes:
    """The response with `output`, which is msgpack already."""
    return _msgpack.encode(msgspec.structs.replace(response, output=msgspec.Raw(output or NIL)))


def typed_response(response: CallResponse, output: bytes) -> TypedResponse:
    """The response of a stream with values in msgpack."""
    fields = {name: getattr(response, name) for name in CallResponse.__struct_fields__}
    return TypedResponse(**fields, output_b64=base64_text(output or NIL))


def response_of(
    call: PreparedCall,
    result: CallResult,
    *,
    book: PriceBook,
    at: float,
    request_id: str,
    output: msgspec.Raw | None = None,
) -> CallResponse:
    """The answer at the monotonic instant `at`; `respond` is the time that no other stage has."""
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


def usage_of(result: CallResult, book: PriceBook, at: float | None = None) -> Usage:
    """What a call that ended at the unix second `at`, by default now, is billed; 0 if it was not metered."""
    spent = result.spent or Spent(ns=0, ppm=0, price="")
    costs = [(spent.price, spent.ppm, pico_cost(spent.ns, spent.ppm, book.rate(spent.price, at)))]
    for price, ppm in ((CORE_PRICE, spent.core_ppm), (MEMORY_PRICE, spent.gib_ppm)):
        if ppm and (rate := book.rate(price, at)):
            costs.append((price, ppm, pico_cost(spent.ns, ppm, rate)))
    parts = tuple([UsagePart(price=price, ppm=ppm, cost=pico_text(cost)) for price, ppm, cost in costs if ppm])
    return Usage(
        gpu_ms=spent.ns * spent.ppm / (WHOLE_DEVICE * NS_PER_MS),
        ns=spent.ns,
        ppm=spent.ppm,
        price=spent.price,
        cost=parts[0].cost if len(costs) == len(parts) == 1 else pico_text(sum(cost for _, _, cost in costs)),
        currency=book.currency,
        parts=parts,
        batch_size=spent.batch_size,
        attempts=result.attempts,
        units=result.units or msgspec.UNSET,
    )


def is_value(call: PreparedCall) -> bool:
    """Whether the result has a value: a generator's values are in its chunks."""
    return call.method.mode is Mode.UNARY


def list_of(chunks: list[bytes]) -> bytes:
    """The msgpack of a list of values, each of which is msgpack."""
    return _msgpack.encode([msgspec.Raw(chunk) for chunk in chunks])


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
