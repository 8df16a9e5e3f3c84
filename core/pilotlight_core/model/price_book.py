"""The price book, from `prices.toml`: what the ledger bills, and what placement and planning compare."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pilotlight_core.model.devices import FAKE_PRICE, UNKNOWN_PRICE
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import NS_PER_HOUR, WHOLE_DEVICE

STANDARD = Path(__file__).with_name("prices.toml")
PLACES = 12
"""Decimal places of an amount: they show a nanosecond of a millionth of a device."""
PICO_PER_NANO = 10 ** (PLACES - 9)
_TIMES = re.compile(r"([1-9][0-9]{0,3})x([a-z].*)")


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Nano-dollars per hour of a whole device, by price id.

    A fake GPU (`fake-h100`) costs what the real one does, and `2xcpu` two times what `cpu` does.
    """

    rates: dict[str, int]
    version: int = 1
    currency: str = "USD"

    def rate(self, price: str) -> int:
        """Nano-dollars per device hour; an unknown id, which the fold counts, costs what an unknown GPU does."""
        rate = self.rates.get(price)
        if rate is not None:
            return rate
        times, name = _read_price(price)
        return times * self.rates.get(name, self.rates.get(UNKNOWN_PRICE, 0))

    def dollars(self, price: str) -> float:
        """Dollars per device hour, to compare devices by."""
        return self.rate(price) / 10**9

    def knows(self, price: str) -> bool:
        return _read_price(price)[1] in self.rates


def load_prices(override: Path | None = None) -> PriceBook:
    """The standard book, with the prices of `override` over it.

    Raises:
        BadInput: names the wrong entry of the file.
    """
    book = standard_book()
    if override is None:
        return book
    more = _read(override)
    return PriceBook(rates=book.rates | more.rates, version=more.version, currency=book.currency)


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
    )


def _rate(path: Path, name: str, entry: Any) -> int:
    rate = entry.get("nano_usd_per_hour") if isinstance(entry, dict) else None
    if not isinstance(rate, int) or isinstance(rate, bool) or rate < 0:
        raise BadInput(
            f"{path}: prices.{name} needs nano_usd_per_hour, an integer of at least 0.", field=f"prices.{name}"
        )
    return rate


def cost_text(ns: int, ppm: int, rate: int) -> str:
    """`units.money(units.cost_of(...))` in integers only, since this runs for every call."""
    scale = WHOLE_DEVICE * NS_PER_HOUR
    whole, rest = divmod(ns * ppm * rate * PICO_PER_NANO, scale)
    if rest * 2 > scale or (rest * 2 == scale and whole & 1):
        whole += 1
    dollars, pico = divmod(whole, 10**PLACES)
    return f"{dollars}.{pico:0{PLACES}d}"
