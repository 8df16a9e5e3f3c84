"""Rates over time."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.every_command import PRICE
from tests.sdk.cli.shell import cells, run
from tests.sdk.scripted import ScriptedPlatform, answer


def test_each_rate_has_a_line(platform: ScriptedPlatform) -> None:
    """Past and to come; a price that never changed has the book's own."""
    told = {"prices": [PRICE, PRICE | {"price": "l4", "usd_per_hour": "0.36", "past": [], "to_come": []}]}
    platform.will("GET", "/v1/prices", answer(told), answer(told | {"currency": "USD"}))
    assert cells(run("billing", "rates")) == [
        ["price", "of", "USD per hour", "USD per second", "at least", "from"],
        ["h100", "device", "3.9492", "0.001097", "the beginning"],
        ["h100", "device", "3", "0.0008333", "2027-01-01T00:00:00Z"],
        ["l4", "device", "0.36", "0.0001", "the beginning"],
    ]
    assert msgspec.json.decode(run("billing", "rates", "--json")) == told | {"currency": "USD"}


def test_units_and_discounts_are_of_no_time(platform: ScriptedPlatform) -> None:
    """The least that a start is billed is beside the price of its device."""
    rate = {"from": None, "usd_per_hour": "0.8"}
    more = {"usd_per_hour": "0.8", "to_come": []}
    prices = [
        PRICE | more | {"price": "l4", "past": [rate | {"minimum_ms": 100}]},
        PRICE | more | {"price": "prompt_tokens", "of": "million", "past": [rate]},
        PRICE | more | {"price": "tenant.acme", "of": "dollar by the list", "past": [rate]},
    ]
    platform.will("GET", "/v1/prices", answer({"prices": prices}))
    assert cells(run("billing", "rates"))[1:] == [
        ["l4", "device", "0.8", "0.0002222", "100 ms", "the beginning"],
        ["prompt_tokens", "million", "0.8", "the beginning"],
        ["tenant.acme", "dollar by the list", "0.8", "the beginning"],
    ]
