"""Prices by date: one source for receipts, the ledger and placement, in the registry's records `price.{id}`.

A gateway that has a price file writes its prices there when it starts. Every process has a price book, over which the
records go; a price without a record is the book's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Kv
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.price_book import PriceBook, PriceRecord, records_of

LONGEST_S = 60.0
"""Seconds between two looks at the clock, which may have been set."""
KIND = "price."

log = structlog.get_logger(__name__)
_decoder = msgspec.msgpack.Decoder(PriceRecord)


async def write_prices(registry: Registry, path: Path) -> None:
    """Write the prices of a file to the registry, where they differ; others stay.

    Raises:
        BadInput: names the wrong entry of the file.
        BusError.
    """
    for record in records_of(path):
        if not NAME.fullmatch(record.id):
            log.warning("a price without the name of one holds in this process alone", price=record.id)
            continue

        def changed(_before: PriceRecord | None, record: PriceRecord = record) -> PriceRecord:
            return record

        await registry.change_price(record.id, changed)


async def follow_prices(registry: Registry, book: PriceBook, *, wall: Callable[[], float] = time.time) -> None:
    """Keep a book at the registry's prices of now, until cancelled."""
    due = asyncio.Event()

    def changed(key: str, record: Any) -> None:
        if key.startswith(KIND):
            book.put(key.removeprefix(KIND), record.rates if record is not None else None)
            due.set()

    registry.on_change.append(changed)
    try:
        for record in registry.prices():
            book.put(record.id, record.rates)
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
    for name in before - found.keys():
        book.put(name, None)
    for name, record in found.items():
        book.put(name, record.rates)
    return frozenset(found)


async def _wait(due: asyncio.Event, pause_s: float) -> None:
    try:
        async with asyncio.timeout(pause_s):
            await due.wait()
    except TimeoutError:
        pass
