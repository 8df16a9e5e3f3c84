"""Encodes the results of calls as answers."""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec

from pilotlight_core.model.api.budget_api import usd_text
from pilotlight_core.model.api.call_api import CallResponse, JobStatus, Latency, TypedResponse, Usage, UsagePart
from pilotlight_core.model.devices import CORE_PRICE, MEMORY_PRICE, MINIMUM_PRICE
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Spent, lack_ns
from pilotlight_core.model.price_book import PLACES, Charge, PriceBook, unit_charges
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.units import NANO_USD, NS_PER_HOUR, NS_PER_MS, WHOLE_DEVICE
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall

_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
NIL = b"\xc0"
NULL = b"null"
HOLE = f'"{token()}"'.encode()
"""Stands in JSON where a long value comes: nobody else knows it."""
UNMETERED = Spent(ns=0, ppm=0, price="")
PICO_PER_NANO: int = 10 ** (PLACES - 9)
SCALE: int = WHOLE_DEVICE * NS_PER_HOUR


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
        version=result.fallback or call.version.ref,
        usage=usage_of(result, book, call.tenant),
        latency=Latency(total_ms=total, stages=stages),
        cold_start=result.cold_start,
        request_id=request_id,
        fallback_for=call.version.ref if result.fallback else msgspec.UNSET,
    )


def usage_of(result: CallResult, book: PriceBook, tenant: str = "", at: float | None = None) -> Usage:
    """What a tenant's call that ended at the unix second `at`, by default now, is billed; 0 if it was not metered."""
    spent = result.spent or UNMETERED
    ns, ppm, price = spent.ns, spent.ppm, spent.price
    parts: list[UsagePart] = []
    off = book.discount(tenant, at)
    total, ns_ppm = _add_parts(parts, spent, book, at, off), ns * ppm
    for before in result.spent_before:
        total += _add_parts(parts, before, book, at, off)
        ns, ns_ppm = ns + before.ns, ns_ppm + before.ns * before.ppm
    if result.sold and book.sells_units:
        total += sum(_add_charge(parts, charge, off) for charge in unit_charges(result.sold, book, at))
    return Usage(
        gpu_ms=ns_ppm / (WHOLE_DEVICE * NS_PER_MS),
        ns=ns,
        ppm=ppm,
        price=price,
        cost=pico_text(total),
        currency=book.currency,
        parts=tuple(parts),
        batch_size=spent.batch_size,
        attempts=result.attempts,
        units=result.units or msgspec.UNSET,
        discount=usd_text(off) if off else msgspec.UNSET,
    )


def _add_parts(parts: list[UsagePart], spent: Spent, book: PriceBook, at: float | None, off: int) -> int:
    """Add what each price takes of starts; returns their sum in pico-dollars."""
    ns, ppm, price, purchase = spent.ns, spent.ppm, spent.price, spent.purchase
    # Of several devices each is a whole one.
    part_ppm = min(ppm, WHOLE_DEVICE)
    rate, least = book.rate_and_least(price, at, purchase=purchase, ppm=part_ppm)
    total = pico_cost(ns, ppm, rate, off)
    if ppm:
        parts.append(UsagePart(price=price, ppm=ppm, cost=pico_text(total)))
    for more, more_ppm in ((CORE_PRICE, spent.core_ppm), (MEMORY_PRICE, spent.gib_ppm)):
        if more_ppm and (of_host := book.rate(more, at, purchase=purchase)):
            added = pico_cost(ns, more_ppm, of_host, off)
            total += added
            parts.append(UsagePart(price=more, ppm=more_ppm, cost=pico_text(added)))
    if least and ppm and (lack := lack_ns(spent, least)):
        total += _add_charge(parts, Charge(MINIMUM_PRICE, ppm, rate, lack), off)
    return total


def _add_charge(parts: list[UsagePart], charge: Charge, off: int) -> int:
    price, ppm, rate, amount = charge
    cost = pico_cost(amount, ppm, rate, off)
    parts.append(UsagePart(price=price, ppm=ppm, cost=pico_text(cost), amount=amount))
    return cost


def pico_cost(ns: int, ppm: int, rate: int, discount: int = 0) -> int:
    """`units.cost_of` in pico-dollars, rounded half-even, in integers only, since this runs for every call."""
    scale = SCALE
    exact = ns * ppm * rate * PICO_PER_NANO
    if discount:
        exact, scale = exact * (NANO_USD - discount), SCALE * NANO_USD
    whole, rest = divmod(exact, scale)
    if rest * 2 > scale or (rest * 2 == scale and whole & 1):
        whole += 1
    return whole


def pico_text(amount: int) -> str:
    """Pico-dollars as `units.money` writes them."""
    digits = str(amount).zfill(PLACES + 1)
    return digits[:-PLACES] + "." + digits[-PLACES:]


def is_value(call: PreparedCall) -> bool:
    """Whether the result has a value: a generator's values are in its chunks."""
    return call.method.mode is Mode.UNARY


def list_of(chunks: list[bytes]) -> bytes:
    """The msgpack of a list of values, each of which is msgpack."""
    return _msgpack.encode([msgspec.Raw(chunk) for chunk in chunks])


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class CallAnswers:
    """Renders results. `clock`: monotonic seconds."""

    def __init__(self, codec: BodyCodec, book: PriceBook, clock: Callable[[], float]) -> None:
        self._codec = codec
        self._book = book
        self._clock = clock

    async def render(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[list[bytes], Latency]:
        """The body of a call's answer in pieces, and its latency by stage.

        Raises:
            BadOutput: the output violates the function's schema, or is too large for JSON.
            Unavailable: the byte budget has no room for it.
        """
        codec, version = self._codec, call.version.id
        method = call.method if is_value(call) else None  # the chunks of a generator were checked
        if answer is BodyFormat.JSON:
            output = await codec.output_json(result.output, version, method, call.tenant)
            return self._as_json(call, result, output, request_id)
        if method is not None:
            await codec.check_output(result.output, version, method, call.tenant)
        return self._as_msgpack(call, result, request_id)

    def render_now(
        self, call: PreparedCall, result: CallResult, answer: BodyFormat, request_id: str
    ) -> tuple[list[bytes], Latency]:
        """As `render`, of a function that returns a value, on the event loop.

        Raises:
            BadOutput: as `render`.
            TooManyValues: it would take too long here.
        """
        codec, version, method = self._codec, call.version.id, call.method
        if answer is BodyFormat.JSON:
            return self._as_json(call, result, [codec.at_once.output_json(result.output, version, method)], request_id)
        codec.at_once.check_output(result.output, version, method)
        return self._as_msgpack(call, result, request_id)

    def _as_json(
        self, call: PreparedCall, result: CallResult, output: list[bytes], request_id: str
    ) -> tuple[list[bytes], Latency]:
        if len(output) == 1:
            response = self._response(call, result, request_id, msgspec.Raw(output[0]))
            return [encode_json(response)], response.latency
        response = self._response(call, result, request_id)
        return json_around(lambda raw: msgspec.structs.replace(response, output=raw), output), response.latency

    def _as_msgpack(self, call: PreparedCall, result: CallResult, request_id: str) -> tuple[list[bytes], Latency]:
        response = self._response(call, result, request_id)
        return [encode_msgpack(response, result.output)], response.latency

    def _response(
        self, call: PreparedCall, result: CallResult, request_id: str, output: msgspec.Raw | None = None
    ) -> CallResponse:
        return response_of(call, result, book=self._book, at=self._clock(), request_id=request_id, output=output)
