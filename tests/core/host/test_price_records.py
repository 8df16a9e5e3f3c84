"""One source of prices: a gateway's file goes to the registry, and every book follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_core.bus import Bus
from pilotlight_core.host.price_records import follow_prices, read_prices, write_prices
from pilotlight_core.host.registry import Registry
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
