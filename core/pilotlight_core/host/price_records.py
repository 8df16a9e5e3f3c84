"""Prices by date: one source for receipts, the ledger and placement, in the registry's records `price.{id}`.

A gateway that has a price file writes its prices there when it starts, but for those that an operator has set by
request (`set_price`). Every process has a price book, over which the
records go; a price without a record is the book's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import structlog

from pilotlight_core.bus import Kv
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.errors import BadInput, NotFound
from pilotlight_core.model.price_book import (
    DatedRate,
    PriceBook,
    PriceRecord,
    dated_rate_at,
    is_of_tenant,
    price_terms,
    records_of,
)

LONGEST_S = 60.0
"""Seconds between two looks at the clock, which may have been set."""
KIND = "price."
LEAD_S = 30.0
"""Seconds between a request to change a price and the change: by then all processes know of it. The fold of usage looks
each ten seconds."""
KEPT_S = 100 * 86_400.0
"""Rates that ended so long ago go: no usage comes so late."""
MOST_RATES = 1_000
"""Of one price: ten changes a day, as long as they are kept."""

log = structlog.get_logger(__name__)
_decoder = msgspec.msgpack.Decoder(PriceRecord)


class PriceRegistry(Protocol):
    """The records of prices."""

    def prices(self) -> Iterator[PriceRecord]: ...
    async def change_price(
        self, price: str, change: Callable[[PriceRecord | None], PriceRecord | None]
    ) -> PriceRecord | None: ...


async def set_price(
    registry: PriceRegistry,
    book: PriceBook,
    price: str,
    rate: int,
    *,
    starts_at: float | None,
    at: float,
    minimum_ms: int | None = None,
) -> PriceRecord:
    """Let a price be `rate` nano-dollars per hour from a unix second on; None: as soon as all can know of it.

    `minimum_ms` is what a start is billed at least; None: what it was until then. Rates that begin later stay, and so
    does what has begun: what has run is not priced anew.

    Raises:
        BadInput: it would begin too soon, or there are too many rates.
        BusError.
    """
    soonest = at + LEAD_S
    if starts_at is not None and starts_at < soonest:
        raise BadInput(
            f"from: a price changes {LEAD_S:.0f} s from now at the earliest, and what has run keeps its price.",
            field="from",
        )
    begins = soonest if starts_at is None else starts_at

    def changed(before: PriceRecord | None) -> PriceRecord:
        had = before.rates if before is not None else _configured(book, price)
        before_it = dated_rate_at(had, begins)
        least = (before_it.minimum_ms if before_it is not None else 0) if minimum_ms is None else minimum_ms
        new = DatedRate(starts_at=begins, nano_usd_per_hour=rate, minimum_ms=least)
        rates = {one.starts_at: one for one in (*had, new)}
        ended = sorted(one for one in rates if one < at - KEPT_S)[:-1]
        kept = tuple(rates[one] for one in sorted(rates.keys() - ended))
        if len(kept) > MOST_RATES:
            days = KEPT_S / 86_400
            raise BadInput(
                f"from: {price} has {MOST_RATES} rates, with those of the last {days:.0f} days. Take changes back that "
                "are to come, or wait.",
                field="from",
            )
        return PriceRecord(id=price, rates=kept, is_set=True)

    return _there(price, await registry.change_price(price, changed))


async def drop_changes(registry: PriceRegistry, price: str, *, at: float) -> PriceRecord:
    """Take the changes of a price back that begin no sooner than all can know of it.

    Raises:
        NotFound: there are none.
        BusError.
    """

    def changed(before: PriceRecord | None) -> PriceRecord:
        had = before.rates if before is not None else ()
        kept = tuple(one for one in had if one.starts_at < at + LEAD_S)
        if before is None or len(kept) == len(had):
            raise NotFound(f"No change of {price} is to come that could be taken back.")
        return PriceRecord(id=price, rates=kept, is_set=True)

    return _there(price, await registry.change_price(price, changed))


def _configured(book: PriceBook, price: str) -> tuple[DatedRate, ...]:
    """Nothing for what costs what its product does until it has a price of its own."""
    terms = price_terms(price)
    if price not in book.configured and (is_of_tenant(price) or (terms is not None and terms.is_special)):
        return ()
    return (DatedRate(nano_usd_per_hour=book.configured.get(price, 0)),)


def _there(price: str, record: PriceRecord | None) -> PriceRecord:
    if record is None:
        raise NotFound(f"There is no price {price!r}.")
    return record


async def write_prices(registry: Registry, path: Path) -> None:
    """Write the prices of a file to the registry, where they differ; others stay, and those that were set by request.

    Raises:
        BadInput: names the wrong entry of the file.
        BusError.
    """
    for record in records_of(path):
        if price_terms(record.id) is None:
            log.warning("a price without the name of one holds in this process alone", price=record.id)
            continue

        def changed(before: PriceRecord | None, record: PriceRecord = record) -> PriceRecord:
            return before if before is not None and before.is_set else record

        if (kept := await registry.change_price(record.id, changed)) is not None and kept.is_set:
            log.info("a price was set by request, and the file's is not used", price=record.id)


async def follow_prices(registry: Registry, book: PriceBook, *, wall: Callable[[], float] = time.time) -> None:
    """Keep a book at the registry's prices of now, until cancelled."""
    due = asyncio.Event()

    def changed(key: str, record: Any) -> None:
        if key.startswith(KIND):
            book.put(key.removeprefix(KIND), record.rates if record is not None else None)
            due.set()

    registry.on_change.append(changed)
    try:
        book.put_all({record.id: record.rates for record in registry.prices()})
        while True:
            due.clear()
            at = wall()
            change_at = book.refresh(at)
            pause_s = LONGEST_S if change_at is None else min(LONGEST_S, max(0.0, change_at - at))
            await _wait(due, pause_s)
    finally:
        registry.on_change.remove(changed)


async def read_prices(registry: Kv, book: PriceBook, before: frozenset[str] = frozenset()) -> frozenset[str]:
    """Take the prices over that the registry has now, for a process that does not follow it; returns their names.

    `before` are those that it had when it was read last: what is not there any more is the book's own again.

    Raises:
        BusError.
    """
    found: dict[str, PriceRecord] = {}
    for key, entry in (await registry.entries(KIND)).items():
        try:
            found[key.removeprefix(KIND)] = _decoder.decode(entry.value)
        except msgspec.DecodeError as error:
            log.error("a price cannot be read", key=key, error=str(error))
    gone: dict[str, tuple[DatedRate, ...] | None] = dict.fromkeys(before - found.keys())
    book.put_all(gone | {name: record.rates for name, record in found.items()})
    return frozenset(found)


async def _wait(due: asyncio.Event, pause_s: float) -> None:
    try:
        async with asyncio.timeout(pause_s):
            await due.wait()
    except TimeoutError:
        pass
