"""The price book, from `prices.toml`: what the ledger bills, and what placement and planning compare."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from pilotlight_core.model.devices import FAKE_PRICE, UNKNOWN_PRICE
from pilotlight_core.model.errors import BadInput

STANDARD = Path(__file__).with_name("prices.toml")
PLACES = 12
"""Decimal places of an amount: they show a nanosecond of a millionth of a device."""
RATES_BELOW = 10**15
"""Nano-dollars per hour, as `PUT /v1/prices` bounds them: the ledger's columns have no room for 10**19."""
KNOWN_AT_MOST = 256
"""Prices like `2xcpu` whose rates are kept."""
_TIMES = re.compile(r"([1-9][0-9]{0,3})x([a-z].*)")


class DatedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that holds from an instant on."""

    starts_at: float = msgspec.field(default=0.0, name="from")
    """Unix seconds; 0.0: since ever."""
    nano_usd_per_hour: int


class PriceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The registry's record of a price: its rates over time."""

    id: str
    rates: tuple[DatedRate, ...]
    is_set: bool = False
    """By an operator's request: no price file goes over it."""


@dataclass(kw_only=True)
class PriceBook:
    """Nano-dollars per hour of a whole device, by price id: those of now, and by date.

    A fake GPU (`fake-h100`) costs what the real one does, and `2xcpu` two times what `cpu` does. `cpu_core` and
    `memory_gib` are of a core and of a GiB.
    """

    rates: dict[str, int]
    """Of now: `refresh` keeps them so."""
    version: int = 1
    currency: str = "USD"
    dated: dict[str, tuple[DatedRate, ...]] = field(default_factory=dict)
    """The prices that change, or that the registry has: all their rates. `put` changes it."""
    configured: dict[str, int] = field(default_factory=dict)
    """The rates before the first date, or without one: those that the book is made with."""

    revision: int = 0
    """Rises with each change of the present rates."""

    _looked_up: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """Present rates of ids that `rates` does not name, such as `2xcpu`."""

    def __post_init__(self) -> None:
        if not self.configured:
            self.configured.update(self.rates)

    def rate(self, price: str, at: float | None = None) -> int:
        """Nano-dollars per device hour at a unix second, by default now.

        An unknown id, which the fold counts, costs what an unknown GPU does.
        """
        if at is None:
            rate = self.rates.get(price)
            if rate is None:
                rate = self._looked_up.get(price)
            return self._find_rate(price) if rate is None else rate
        rate = self._rate_at(price, at)
        if rate is not None:
            return rate
        times, name = _read_price(price)
        rate = self._rate_at(name, at)
        return times * ((self._rate_at(UNKNOWN_PRICE, at) or 0) if rate is None else rate)

    def _find_rate(self, price: str) -> int:
        times, name = _read_price(price)
        rate = times * self.rates.get(name, self.rates.get(UNKNOWN_PRICE, 0))
        if len(self._looked_up) >= KNOWN_AT_MOST:
            self._looked_up.clear()
        self._looked_up[price] = rate
        return rate

    def put(self, price: str, rates: Sequence[DatedRate] | None) -> None:
        """Give a price these rates over time, in place of those it had; None: the configured one again."""
        if rates is None:
            self.dated.pop(price, None)
        else:
            self.dated[price] = tuple(sorted(rates, key=lambda rate: rate.starts_at))

    def refresh(self, at: float) -> float | None:
        """Make `rates` those of the unix second `at`; returns when the next one changes, if one does."""
        now = self.configured | {name: rate for name in self.dated if (rate := self._rate_at(name, at)) is not None}
        if now != self.rates:
            self.rates.clear()
            self.rates.update(now)
            self._looked_up.clear()
            self.revision += 1
        return min(
            (rate.starts_at for rates in self.dated.values() for rate in rates if rate.starts_at > at), default=None
        )

    def _rate_at(self, price: str, at: float) -> int | None:
        rate = rate_at(self.dated.get(price, ()), at)
        return self.configured.get(price) if rate is None else rate

    def dollars(self, price: str) -> float:
        """Dollars per device hour, to compare devices by."""
        return self.rate(price) / 10**9

    def knows(self, price: str) -> bool:
        name = _read_price(price)[1]
        return name in self.rates or name in self.dated


def rate_at(rates: Iterable[DatedRate], at: float) -> int | None:
    """The one of these rates that holds at the unix second `at`; None: none has begun."""
    begun = [rate for rate in rates if rate.starts_at <= at]
    return max(begun, key=lambda rate: rate.starts_at).nano_usd_per_hour if begun else None


def load_prices(override: Path | None = None) -> PriceBook:
    """The standard book, with the prices of `override` over it.

    Raises:
        BadInput: names the wrong entry of the file.
    """
    book = standard_book()
    if override is None:
        return PriceBook(rates=dict(book.rates), version=book.version, currency=book.currency)
    more = _read(override)
    rates = book.rates | more.rates
    return PriceBook(rates=rates, version=more.version, currency=book.currency, dated=dict(more.dated))


def records_of(path: Path) -> list[PriceRecord]:
    """The prices of a file as the registry's records.

    Raises:
        BadInput: names the wrong entry of the file.
    """
    book = _read(path)
    return [
        PriceRecord(id=name, rates=(DatedRate(nano_usd_per_hour=rate), *book.dated.get(name, ())))
        for name, rate in book.configured.items()
    ]


@cache
def standard_book() -> PriceBook:
    return _read(STANDARD)


def _read_price(price: str) -> tuple[int, str]:
    """How often a price counts, and its id in the book."""
    price = price.removeprefix(FAKE_PRICE)
    several = _TIMES.fullmatch(price)
    return (int(several[1]), several[2]) if several else (1, price)


def _read(path: Path) -> PriceBook:
    try:
        data = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"the price file {path} cannot be read: {error}.", field="price_file") from error
    prices = data.get("prices", {})
    return PriceBook(
        rates={name: _rate(path, name, entry) for name, entry in prices.items()},
        version=int(data.get("version", 1)),
        currency=str(data.get("currency", "USD")),
        dated={name: tuple(_later(path, name, entry["later"])) for name, entry in prices.items() if "later" in entry},
    )


def _later(path: Path, name: str, entries: Any) -> Iterable[DatedRate]:
    """The dated rates of a price: `[[prices.NAME.later]]`, each with `from` and `nano_usd_per_hour`."""
    for entry in entries if isinstance(entries, list) else [None]:
        starts = entry.get("from") if isinstance(entry, dict) else None
        if type(starts) is datetime.date:
            starts = datetime.datetime.combine(starts, datetime.time(), datetime.UTC)
        if not isinstance(starts, datetime.datetime) or starts.tzinfo is None:
            raise BadInput(
                f"{path}: each of prices.{name}.later needs from: a date (in UTC) or an instant with a zone.",
                field=f"prices.{name}",
            )
        try:
            starts_at = starts.astimezone(datetime.UTC).timestamp()
        except OverflowError:
            raise BadInput(
                f"{path}: prices.{name}.later: expected from in the years 1 to 9999 of UTC.", field=f"prices.{name}"
            ) from None
        yield DatedRate(starts_at=starts_at, nano_usd_per_hour=_rate(path, name, entry))


def _rate(path: Path, name: str, entry: Any) -> int:
    rate = entry.get("nano_usd_per_hour") if isinstance(entry, dict) else None
    if not isinstance(rate, int) or isinstance(rate, bool) or not 0 <= rate < RATES_BELOW:
        raise BadInput(
            f"{path}: prices.{name} needs nano_usd_per_hour, an integer from 0 to {RATES_BELOW - 1}.",
            field=f"prices.{name}",
        )
    return rate
