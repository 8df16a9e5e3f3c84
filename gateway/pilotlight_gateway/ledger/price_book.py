"""The price book, from `prices.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilotlight_core.model.devices import FAKE_PRICE
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import NS_PER_HOUR, WHOLE_DEVICE

STANDARD = Path(__file__).with_name("prices.toml")
PLACES = 12
"""Decimal places of an amount: they show a nanosecond of a millionth of a device."""
PICO_PER_NANO = 10 ** (PLACES - 9)


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Nano-dollars per hour of a whole device, by price id. A fake GPU (`fake-h100`) costs what the real one does."""

    rates: dict[str, int]
    version: int = 1
    currency: str = "USD"

    def rate(self, price: str) -> int:
        """Nano-dollars per device hour; 0 for an unknown id, which the fold counts."""
        return self.rates.get(price.removeprefix(FAKE_PRICE), 0)

    def knows(self, price: str) -> bool:
        return price.removeprefix(FAKE_PRICE) in self.rates


def load_prices(override: Path | None = None) -> PriceBook:
    """The standard book, with the prices of `override` over it.

    Raises:
        BadInput: names the wrong entry of the file.
    """
    book = _read(STANDARD)
    if override is None:
        return book
    more = _read(override)
    return PriceBook(rates=book.rates | more.rates, version=more.version, currency=book.currency)


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
