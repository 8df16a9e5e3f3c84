"""What a call came to, as the bytes of its answer."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from pilotlight_core.model.api.call_api import UsagePart
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.price_book import DatedRate, PriceBook, load_prices
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.units import cost_of, money
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_responses import (
    NIL,
    encode_msgpack,
    is_value,
    json_around,
    list_of,
    pico_cost,
    pico_text,
    response_of,
    typed_response,
    usage_of,
)
from tests.builders.calls import prepared_call
from tests.builders.specs import method

BOOK = PriceBook(rates={"h100": 3_600_000_000_000})
"""A dollar a second."""
SPENT = Spent(ns=500_000_000, ppm=500_000, price="h100", batch_size=4)

NS = st.integers(0, 10**15)
PPM = st.integers(0, 8_000_000)
RATE = st.integers(0, 10**11)


def response(result: CallResult, at: float = 3.0) -> Any:
    return response_of(prepared_call(arrived_at=1.0), result, book=BOOK, at=at, request_id="req_1")


@pytest.mark.parametrize("value", [[b"7"], [b"[1", b",2]"]])
def test_a_long_value_stands_in_its_answer_in_pieces(value: list[bytes]) -> None:
    """As it would in one."""
    answer = response(CallResult(output=b""))
    pieces = json_around(lambda raw: msgspec.structs.replace(answer, output=raw), value)
    assert msgspec.json.decode(b"".join(pieces))["output"] == msgspec.json.decode(b"".join(value))


@pytest.mark.parametrize(("output", "value"), [(msgspec.msgpack.encode([1, 2]), [1, 2]), (b"", None)])
def test_msgpack_travels_as_it_is(output: bytes, value: Any) -> None:
    """It is not decoded on its way; where there is none, it is nil."""
    answer = response(CallResult(output=output))
    assert msgspec.msgpack.decode(encode_msgpack(answer, output))["output"] == value
    typed = typed_response(answer, output)
    assert (typed.output, base64.b64decode(typed.output_b64 or "")) == (None, output or NIL)


def test_stages_sum_to_the_whole_time() -> None:
    """What no stage explains is `respond`, which is never below nothing."""
    latency = response(CallResult(output=b"", stages={"queue": 500.0, "execute": 1_000.0})).latency
    assert (latency.total_ms, latency.stages["respond"]) == (2_000.0, 500.0)
    assert response(CallResult(output=b"", stages={"queue": 9_000.0})).latency.stages["respond"] == 0.0


def test_an_answer_of_a_fallback_names_both_versions() -> None:
    """The one that ran, and the one that was asked for; others say nothing of it."""
    answer = response(CallResult(output=b"", fallback="app.small@v3"))
    assert (answer.version, answer.fallback_for) == ("app.small@v3", "app.fn@v1")
    assert b"fallback" not in msgspec.json.encode(response(CallResult(output=b"")))


def test_usage_is_billed_by_share_and_price() -> None:
    """Half a second of half a device at a dollar a second."""
    usage = usage_of(CallResult(output=b"", spent=SPENT, attempts=2), BOOK)
    assert (usage.gpu_ms, usage.cost, usage.currency) == (250.0, "0.250000000000", "USD")
    assert (usage.ns, usage.ppm, usage.price, usage.batch_size, usage.attempts) == (500_000_000, 500_000, "h100", 4, 2)


def test_cores_and_memory_are_parts_of_the_cost() -> None:
    """At a dollar an hour of each; what has no price, and what there is nothing of, is no part."""
    hour = 3_600 * 10**9
    book = PriceBook(rates={"h100": 10**9, "cpu_core": 10**9, "memory_gib": 0})
    spent = Spent(ns=hour, ppm=500_000, price="h100", core_ppm=2_000_000, gib_ppm=4_000_000)

    usage = usage_of(CallResult(output=b"", spent=spent), book)

    assert usage.cost == "2.500000000000"
    assert usage.parts == (
        UsagePart(price="h100", ppm=500_000, cost="0.500000000000"),
        UsagePart(price="cpu_core", ppm=2_000_000, cost="2.000000000000"),
    )
    assert [part.price for part in usage_of(CallResult(output=b"", spent=SPENT), book).parts] == ["h100"]


def test_what_nobody_metered_costs_nothing() -> None:
    """Its container had no meter."""
    usage = usage_of(CallResult(output=b""), BOOK)
    assert (usage.gpu_ms, usage.cost, usage.parts, usage.batch_size) == (0.0, "0.000000000000", (), 1)


def test_a_generator_has_its_values_in_its_chunks() -> None:
    """Together they are a list; its result has none."""
    assert msgspec.msgpack.decode(list_of([msgspec.msgpack.encode(n) for n in (1, 2)])) == [1, 2]
    assert is_value(prepared_call())
    assert not is_value(prepared_call(method=method(mode=Mode.GENERATOR)))


@given(NS, PPM, RATE)
def test_a_receipts_cost_is_what_the_report_says_of_one_line(ns: int, ppm: int, rate: int) -> None:
    """The integer way of the hot path and exact fractions print the same twelve places."""
    assert pico_text(pico_cost(ns, ppm, rate)) == money(cost_of(ns, ppm, rate))


def test_half_a_picodollar_is_rounded_to_even() -> None:
    """Money is rounded half-even, once."""
    half_of_a_picodollar = 1_800_000_000  # an hour of 1/2,000,000,000 of a dollar per hour, in ns at the rate 1 nano
    assert [pico_text(pico_cost(n * half_of_a_picodollar, 1_000_000, 1)) for n in (1, 3, 5)] == [
        money(cost_of(n * half_of_a_picodollar, 1_000_000, 1)) for n in (1, 3, 5)
    ]


def test_discounts_leasts_and_units_are_told() -> None:
    """Each part is what its tenant pays; the ledger bills the same."""
    book = load_prices()
    book.put("h100", [DatedRate(nano_usd_per_hour=3_600 * 10**9, minimum_ms=2_000)])
    book.put("tenant.acme", [DatedRate(nano_usd_per_hour=500_000_000)])
    book.put("prompt_tokens", [DatedRate(nano_usd_per_hour=10**9)])
    book.refresh(0.0)
    spent = Spent(ns=3_500_000_000, ppm=10**6, price="h100", starts=(500_000_000, 3_000_000_000))
    counted, sold = {"prompt_tokens": 6_000_000, "images": 1}, {"prompt_tokens": 5_000_000}
    result = CallResult(output=b"", spent=spent, units=counted, sold=sold)

    usage = usage_of(result, book, "acme")

    told = [(part.price, Decimal(part.cost), part.amount) for part in usage.parts]
    assert told == [
        ("h100", Decimal("1.75"), UNSET), ("minimum", Decimal("0.75"), 1_500_000_000),
        ("prompt_tokens", Decimal("2.5"), 5_000_000),
    ]  # fmt: skip
    assert (Decimal(usage.cost), usage.discount, usage.ns) == (Decimal(5), "0.5", spent.ns)
    others = usage_of(result, book, "rival")
    assert (Decimal(others.cost), others.discount) == (Decimal(10), UNSET)
