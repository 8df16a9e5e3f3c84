"""Prices over HTTP: who sees them, and how they change."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import DatedRate, PriceRecord
from pilotlight_gateway.http.endpoints.prices import read_instant
from tests.gateway.world import World

NEW_YEAR = {"usd_per_hour": "3.25", "from": "2100-01-01"}


async def test_tenants_see_what_is_billed(world: World) -> None:
    """Each price of the book with what it is of; records of the registry go over it, dates and all."""
    rates = (DatedRate(nano_usd_per_hour=5 * 10**9), DatedRate(starts_at=4_102_444_800.0, nano_usd_per_hour=1))
    world.registry.price_records["h100"] = PriceRecord(id="h100", rates=rates)
    async with world.client() as client:
        told = {price["price"]: price for price in (await client.get("/v1/prices")).json()["prices"]}

    assert [told[name]["of"] for name in ("l4", "cpu", "cpu_core", "memory_gib")] == ["device", "core", "core", "GiB"]
    assert told["cpu"] == {
        "price": "cpu", "of": "core", "usd_per_hour": "0.04716", "to_come": [],
        "past": [{"from": None, "usd_per_hour": "0.04716"}], "source": "standard",
    }  # fmt: skip
    assert told["h100"] == {
        "price": "h100", "of": "device", "usd_per_hour": "5",
        "past": [{"from": None, "usd_per_hour": "5"}],
        "to_come": [{"from": "2100-01-01T00:00:00Z", "usd_per_hour": "0.000000001"}], "source": "file",
    }  # fmt: skip


async def test_an_operator_changes_a_price_from_a_date_on(world: World) -> None:
    """And takes it back; without a date it changes as soon as all can know of it."""
    async with world.client(world.operator) as client:
        later = (await client.put("/v1/prices/h100", json=NEW_YEAR)).json()
        soon = (await client.put("/v1/prices/h100", json={"usd_per_hour": "0"})).json()
        back = await client.delete("/v1/prices/t4/changes")
        dropped = (await client.delete("/v1/prices/h100/changes")).json()

    assert (later["usd_per_hour"], later["source"]) == ("3.9492", "set")
    assert later["to_come"] == [{"from": "2100-01-01T00:00:00Z", "usd_per_hour": "3.25"}]
    assert [rate["usd_per_hour"] for rate in soon["to_come"]] == ["0", "3.25"]
    assert (back.status_code, back.json()["code"]) == (404, "not_found")
    assert [rate["usd_per_hour"] for rate in dropped["to_come"]] == ["0"]  # it is too near by then
    book = world.ledger.book
    book.put("h100", world.registry.price_records["h100"].rates)
    now = time.time()
    assert [book.rate("h100", at) for at in (now, now + 60.0)] == [3_949_200_000, 0]


async def test_tenants_change_no_price(world: World) -> None:
    """Not even an admin of one."""
    async with world.client() as client:
        answers = [
            await client.put("/v1/prices/h100", json=NEW_YEAR), await client.delete("/v1/prices/h100/changes"),
        ]  # fmt: skip
    assert [answer.status_code for answer in answers] == [403, 403]
    assert world.registry.price_records == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"usd_per_hour": 3.5}, "usd_per_hour"),
        ({"usd_per_hour": "-1"}, "usd_per_hour"),
        ({"usd_per_hour": "1e3"}, "usd_per_hour"),
        ({"usd_per_hour": "1.0000000001"}, "usd_per_hour"),
        ({"usd_per_hour": "1", "from": "tomorrow"}, "from"),
        ({"usd_per_hour": "1", "from": "2100-01-01T10:00"}, "from"),
        ({"usd_per_hour": "1", "from": "2020-01-01"}, "from"),
        ({"usd_per_hour": "1", "from": "9999-12-31T23:59:59-01:00"}, "from"),
        ({"usd_per_hour": "1", "from": 5}, "from"),
        ({"usd_per_hour": "1", "until": "2100-01-01"}, "until"),
    ],
)
async def test_a_wrong_price_names_its_field(world: World, body: dict[str, Any], field: str) -> None:
    """And changes nothing."""
    async with world.client(world.operator) as client:
        answer = await client.put("/v1/prices/h100", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert world.registry.price_records == {}


@pytest.mark.parametrize("name", ["h10", "2xcpu", "fake-h100"])
async def test_a_price_that_nothing_is_billed_by_is_refused(world: World, name: str) -> None:
    """A slip would change nothing; the one that was meant is suggested."""
    async with world.client(world.operator) as client:
        answers = [
            await client.put(f"/v1/prices/{name}", json=NEW_YEAR),
            await client.delete(f"/v1/prices/{name}/changes"),
        ]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(404, "not_found")}
    assert "h100" in answers[0].json()["detail"] or name == "2xcpu"


def test_a_day_is_in_utc_and_an_instant_has_a_zone() -> None:
    """Anything else is refused by the field's name."""
    assert read_instant("1970-01-02", "from") == 86_400.0
    assert read_instant("1970-01-02T01:00:00+01:00", "from") == read_instant("1970-01-02T00:00:00Z", "from") == 86_400.0
    for text in ("", "1970-01-02T00:00:00", "2026-13-01"):
        with pytest.raises(BadInput, match="from: expected a day"):
            read_instant(text, "from")


async def test_a_region_may_have_a_price_of_its_own(world: World) -> None:
    """Until it begins it costs what the product does; what is of no product is refused."""
    async with world.client(world.operator) as client:
        set_ = (await client.put("/v1/prices/h100.spot.eu", json=NEW_YEAR)).json()
        wrong = await client.put("/v1/prices/abacus.eu", json=NEW_YEAR)

    assert (set_["usd_per_hour"], set_["past"], len(set_["to_come"])) == ("1.57968", [], 1)
    assert wrong.status_code == 404


WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tenant.acme", {"usd_per_hour": "1.2"}),
    ("cpu_core", {"usd_per_hour": "1", "minimum_ms": 5}),
    ("tenant.nobody", {"usd_per_hour": "1"}),
    ("t4", {"usd_per_hour": "1", "minimum_ms": 10_001}),
)


async def test_an_operator_sets_discounts_leasts_and_units(world: World) -> None:
    """A change of the rate keeps the least; no other tenant sees a discount."""
    begin: dict[str, Any] = {"from": "2100-01-01"}
    async with world.client(world.operator) as client:
        off = (await client.put("/v1/prices/tenant.acme", json=begin | {"usd_per_hour": "0.8"})).json()
        least = await client.put("/v1/prices/l4", json=begin | {"usd_per_hour": "1", "minimum_ms": 100})
        kept = (await client.put("/v1/prices/l4", json={"usd_per_hour": "2", "from": "2100-02-01"})).json()
        unit = (await client.put("/v1/prices/prompt_tokens", json=begin | {"usd_per_hour": "0.15"})).json()
        everything = {price["price"] for price in (await client.get("/v1/prices")).json()["prices"]}
        wrong = [await client.put(f"/v1/prices/{price}", json=begin | body) for price, body in WRONG]
    async with world.client() as client:
        own = {price["price"] for price in (await client.get("/v1/prices")).json()["prices"]}
    world.registry.price_records["tenant.rival"] = PriceRecord(id="tenant.rival", rates=())
    async with world.client() as client:
        later = {price["price"] for price in (await client.get("/v1/prices")).json()["prices"]}

    assert (off["of"], off["usd_per_hour"]) == ("dollar by the list", "1")
    assert least.json()["to_come"][0]["minimum_ms"] == 100
    assert [rate["minimum_ms"] for rate in kept["to_come"]] == [100, 100]
    assert (unit["of"], unit["usd_per_hour"]) == ("million", "0")
    assert everything >= {"tenant.acme", "prompt_tokens"} <= own
    assert later == own
    assert [(answer.status_code, answer.json()["code"]) for answer in wrong] == [
        (422, "bad_input"), (422, "bad_input"), (404, "not_found"), (422, "bad_input")
    ]  # fmt: skip


async def test_a_unit_has_no_price_by_region_or_purchase(world: World) -> None:
    """Nothing would be billed by it."""
    async with world.client(world.operator) as client:
        answers = [
            await client.put(f"/v1/prices/prompt_tokens.{where}", json={"usd_per_hour": "5"})
            for where in ("eu", "spot")
        ]
    assert [answer.status_code for answer in answers] == [404, 404]
