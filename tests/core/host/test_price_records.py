"""One source of prices: a gateway's file goes to the registry, and every book follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.price_records import (
    KEPT_S,
    LEAD_S,
    MOST_RATES,
    drop_changes,
    follow_prices,
    read_prices,
    set_price,
    write_prices,
)
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_core.model.ids import token
from pilotlight_core.model.price_book import DatedRate, PriceBook, PriceRecord, load_prices
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from tests.waiting import until


def price() -> str:
    """The registry outlives a test: each has a price of its own."""
    return f"p{token(8)}"


@asynccontextmanager
async def following(registry: Registry, book: PriceBook, at: list[float]) -> AsyncIterator[None]:
    task = asyncio.create_task(follow_prices(registry, book, wall=lambda: at[0]))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_file_is_every_books(bus: Bus, tmp_path: Path) -> None:
    """Who follows the registry, and who reads it now and then, has the rates that a gateway wrote, and their dates."""
    name, path = price(), tmp_path / "prices.toml"
    path.write_text(
        f"[prices.{name}]\nnano_usd_per_hour = 5\n"
        f"[[prices.{name}.later]]\nfrom = 1970-01-02T00:00:00Z\nnano_usd_per_hour = 6\n"
    )
    follower, reader = load_prices(), load_prices()
    async with Registry(bus) as registry, Registry(bus) as elsewhere, following(elsewhere, follower, [10.0]):
        await write_prices(registry, path)
        await until(lambda: follower.rates.get(name) == 5)
        await read_prices(bus.kv(REGISTRY_BUCKET), reader)

    for book in (follower, reader):
        assert [book.rate(name, at) for at in (10.0, 86_400.0)] == [5, 6]
    assert follower.rate("h100") == load_prices().rate("h100")


async def test_a_rate_begins_at_its_instant(bus: Bus) -> None:
    """Nobody writes then, and no call asks a clock."""
    name, at, book = price(), [10.0], load_prices()
    rates = (DatedRate(nano_usd_per_hour=5), DatedRate(starts_at=10.02, nano_usd_per_hour=6))
    async with Registry(bus) as registry, following(registry, book, at):
        await registry.change_price(name, lambda _: PriceRecord(id=name, rates=rates))
        await until(lambda: book.rates.get(name) == 5)
        at[0] = 10.02
        await until(lambda: book.rate(name) == 6)


async def test_without_its_record_a_price_is_the_books_again(bus: Bus) -> None:
    """A removed record takes its rates along."""
    name, book, reader = price(), PriceBook(rates={}), load_prices()
    book.configured[name] = 3
    async with Registry(bus) as registry, following(registry, book, [10.0]):
        await registry.change_price(name, lambda _: PriceRecord(id=name, rates=(DatedRate(nano_usd_per_hour=5),)))
        await until(lambda: book.rates.get(name) == 5)
        before = await read_prices(bus.kv(REGISTRY_BUCKET), reader)
        await registry.change_price(name, lambda _: None)
        await until(lambda: book.rates.get(name) == 3)
        await read_prices(bus.kv(REGISTRY_BUCKET), reader, before)

    assert name in before
    assert name not in reader.dated


async def test_a_price_that_is_set_holds_from_its_instant_on(bus: Bus) -> None:
    """What has run before keeps its price; a rate that is to come stays, and one of the same instant is replaced."""
    name, book = price(), PriceBook(rates={})
    book.configured[name] = 3
    async with Registry(bus) as registry:
        await set_price(registry, book, name, 9, starts_at=5_000.0, at=1_000.0)
        await set_price(registry, book, name, 5, starts_at=None, at=1_000.0)
        record = await set_price(registry, book, name, 8, starts_at=5_000.0, at=1_000.0)
    book.put(name, record.rates)

    instants = (0.0, 1_000.0, 1_000.0 + LEAD_S - 0.1, 1_000.0 + LEAD_S, 4_999.0, 5_000.0)
    assert [book.rate(name, at) for at in instants] == [3, 3, 3, 5, 5, 8]
    assert record.is_set


@pytest.mark.parametrize("kind", ["{}.spot", "{}.on-demand.eu-west.1of7", "tenant.{}"])
async def test_prices_of_all_kinds_are_kept_and_heard(bus: Bus, kind: str, tmp_path: Path) -> None:
    """Set by request, or by a file: how, where and to whom a product is sold is in their names."""
    name, path = kind.format(price()), tmp_path / "prices.toml"
    follower, reader, at = load_prices(), load_prices(), [1_000.0]
    path.write_text(f'[prices."{name}"]\nnano_usd_per_hour = 5\n')
    async with Registry(bus) as registry, Registry(bus) as elsewhere, following(elsewhere, follower, at):
        await write_prices(registry, path)
        await until(lambda: follower.rates.get(name) == 5)
        await set_price(registry, follower, name, 7, starts_at=2_000.0, at=at[0])
        await until(lambda: len(follower.dated.get(name, ())) == 2)
        await read_prices(bus.kv(REGISTRY_BUCKET), reader)
        (kept,) = [one for one in registry.prices() if one.id == name]
        heard = follower.dated[name][:2]
        await drop_changes(registry, name, at=at[0])
        with pytest.raises(BadInput, match="is no price"):
            await registry.change_price(f"{name}..", lambda _: None)

    assert [rate.nano_usd_per_hour for rate in kept.rates] == [5, 7]
    assert reader.dated[name] == heard == kept.rates


async def test_a_price_does_not_change_before_all_know_of_it(bus: Bus) -> None:
    """Neither what has run, nor what runs until the ledger has looked; the field is named."""
    name, book = price(), PriceBook(rates={})
    async with Registry(bus) as registry:
        with pytest.raises(BadInput, match="what has run keeps its price") as refused:
            await set_price(registry, book, name, 9, starts_at=1_000.0 + LEAD_S - 0.1, at=1_000.0)
        assert [record for record in registry.prices() if record.id == name] == []
    assert refused.value.more["field"] == "from"


async def test_changes_that_are_to_come_are_taken_back(bus: Bus) -> None:
    """Those that have begun, or nearly, stay."""
    name, book, at = price(), PriceBook(rates={}), 1_000.0
    async with Registry(bus) as registry:
        with pytest.raises(NotFound, match=name):
            await drop_changes(registry, name, at=at)
        for starts_at in (at + LEAD_S, at + 2 * LEAD_S):
            await set_price(registry, book, name, int(starts_at), starts_at=starts_at, at=at)
        record = await drop_changes(registry, name, at=at + 1.0)
        with pytest.raises(NotFound, match=name):
            await drop_changes(registry, name, at=at + 1.0)

    assert [rate.starts_at for rate in record.rates] == [0.0, at + LEAD_S]


async def test_the_rates_of_a_price_are_bounded(bus: Bus) -> None:
    """What ended long ago goes; what may still be billed by does not, and too much to come is refused."""
    name, book = price(), PriceBook(rates={})
    to_come = tuple(DatedRate(starts_at=100.0 + n, nano_usd_per_hour=n) for n in range(MOST_RATES))
    async with Registry(bus) as registry:
        await registry.change_price(name, lambda _: PriceRecord(id=name, rates=to_come))
        with pytest.raises(BadInput, match=f"{MOST_RATES} rates"):
            await set_price(registry, book, name, 1, starts_at=10_000.0, at=200.0)
        record = await set_price(registry, book, name, 1, starts_at=None, at=100.0 + MOST_RATES + KEPT_S)

    assert [rate.nano_usd_per_hour for rate in record.rates] == [MOST_RATES - 1, 1]


async def test_a_file_does_not_go_over_what_was_set(bus: Bus, tmp_path: Path) -> None:
    """A gateway that starts with its file changes nothing of it."""
    name, path, book = price(), tmp_path / "prices.toml", PriceBook(rates={})
    path.write_text(f"[prices.{name}]\nnano_usd_per_hour = 5\n")
    async with Registry(bus) as registry:
        await write_prices(registry, path)
        record = await set_price(registry, book, name, 7, starts_at=9_000.0, at=1_000.0)
        path.write_text(f"[prices.{name}]\nnano_usd_per_hour = 6\n")
        await write_prices(registry, path)
        (kept,) = [one for one in registry.prices() if one.id == name]

    assert kept == record
    assert [rate.nano_usd_per_hour for rate in kept.rates] == [5, 7]
