"""The price book, from `prices.toml`: what the ledger bills, and what placement and planning compare.

An id says of what a price is: a product, and how, where and which part of it is sold.

    h100                  the product
    h100.spot             on spot nodes
    h100.eu               in a region
    h100.1of7             slices of at most a seventh
    h100.spot.eu.1of7     all of it, in this order

A price that says more goes before one that says less; of those that say as much, purchase goes before region, and
region before part. Three kinds of price are of no time of a device:

    cpu_core, memory_gib  an hour of what a container is promised of its host
    prompt_tokens         a million of a `CallUnit` that functions count; one without a price is not sold
    tenant.acme           what a dollar costs this tenant: below one it is its discount
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.model.devices import FAKE_PRICE, HOST_PRICES, UNIT_PPM, UNKNOWN_PRICE, WARM_PRICE
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.units import MOST_SOLD, NS_PER_MS, UNIT_PRICES, WHOLE_DEVICE

STANDARD = Path(__file__).with_name("prices.toml")
PLACES = 12
"""Decimal places of an amount: they show a nanosecond of a millionth of a device."""
RATES_BELOW = 10**15
"""Nano-dollars per hour, as `PUT /v1/prices` bounds them: the ledger's columns have no room for 10**19."""
KNOWN_AT_MOST = 1_024
"""Rates that are kept of those that were asked for."""
NANO = 10**9
SPOT_PRICE = "spot"
"""The price of a dollar's worth of a device on spot nodes, whose product has no spot price of its own."""
TENANT_PRICE = "tenant"
"""Before the name of a tenant: the price of a dollar's worth, for it alone."""
PURCHASES = (Purchase.ON_DEMAND.value, Purchase.SPOT.value)
LONGEST_MINIMUM_MS = 10_000
"""Ten thousand calls a second of one function may lack it, and their sum of a day has room in the ledger's columns."""
WITHOUT_MINIMUM = frozenset((*HOST_PRICES, SPOT_PRICE, TENANT_PRICE, *UNIT_PRICES))
"""They are of no device, and no start is billed a least of them."""
LONGEST_ID = 63 + len(f"{TENANT_PRICE}.")
_PART = re.compile(r"([1-9][0-9]?)of([1-9][0-9]?)")
_TIMES = re.compile(r"([1-9][0-9]{0,3})x([a-z].*)")


_Terms = tuple[int, int]
"""Nano-dollars an hour, and the nanoseconds that a start is billed for at least."""


class PriceTerms(NamedTuple):
    """What the id of a price says; "" and 0: nothing of it."""

    product: str
    purchase: str = ""
    region: str = ""
    most_ppm: int = 0
    """The largest part of a device that it is for."""

    @property
    def is_special(self) -> bool:
        return bool(self.purchase or self.region or self.most_ppm)

    @property
    def rank(self) -> tuple[int, bool, bool, int]:
        """What goes first is largest: of parts the smallest that fits."""
        said = bool(self.purchase) + bool(self.region) + bool(self.most_ppm)
        return said, bool(self.purchase), bool(self.region), -self.most_ppm

    def holds(self, purchase: str, region: str, ppm: int) -> bool:
        """Whether it is for a slice of `ppm` of a device."""
        return (
            self.purchase in ("", purchase)
            and self.region in ("", region)
            and (not self.most_ppm or 0 < ppm <= self.most_ppm)
        )


def price_terms(price: str) -> PriceTerms | None:
    """What a price is of; None: no price has such an id."""
    product, *words = price.split(".")
    purchase = words.pop(0) if words and words[0] in PURCHASES else ""
    part = _PART.fullmatch(words[-1]) if words else None
    if part is not None:
        words.pop()
    region = words.pop(0) if words else ""
    names = (product, region) if region else (product,)
    if price.endswith(".") or words or len(price) > LONGEST_ID or not all(map(NAME.fullmatch, names)):
        return None
    if part is not None and int(part[1]) > int(part[2]):
        return None
    # Rounded up: a device's seven parts are not alike in whole millionths.
    most_ppm = -(-WHOLE_DEVICE * int(part[1]) // int(part[2])) if part is not None else 0
    return PriceTerms(product, purchase, region, most_ppm)


def check_price(price: str) -> str:
    """Return the id of a price if it is one.

    Raises:
        BadInput: says what is expected.
    """
    if price_terms(price) is None:
        known = "h100, h100.spot or tenant.acme"
        raise BadInput(f"{price[:100]!r} is no price: expected one such as {known}.", field="price")
    return price


def is_of_tenant(price: str) -> bool:
    """Whether it is what a tenant pays of a dollar."""
    return price.startswith(f"{TENANT_PRICE}.")


class DatedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that holds from an instant on."""

    starts_at: float = msgspec.field(default=0.0, name="from")
    """Unix seconds; 0.0: since ever."""
    nano_usd_per_hour: int
    minimum_ms: int = 0
    """A start of a call is billed for so many milliseconds of the device at least."""


class PriceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The registry's record of a price: its rates over time. Key: `price.{id}`."""

    id: str
    rates: tuple[DatedRate, ...]
    is_set: bool = False
    """By an operator's request: no price file goes over it."""


@dataclass(kw_only=True)
class PriceBook:
    """Nano-dollars per hour of a whole device, by price id: those of now, and by date.

    A fake GPU (`fake-h100`) costs what the real one does, and `2xcpu` two times what `cpu` does. `cpu_core` and
    `memory_gib` are of a core and of a GiB. How, where and which part of a product is sold may have prices of its own
    (`price_terms`); on spot nodes, what has no spot price costs `spot` for each dollar.
    """

    rates: dict[str, int]
    """Of now: `refresh` keeps them so."""
    version: int = 1
    currency: str = "USD"
    dated: dict[str, tuple[DatedRate, ...]] = field(default_factory=dict)
    """The prices that change, or that the registry has: all their rates. `put` changes it."""
    configured: dict[str, int] = field(default_factory=dict)
    """The rates before the first date, or without one: those that the book is made with."""

    region: str = ""
    """Where this process is: that of what it asks for without naming one."""
    revision: int = 0
    """Rises with each change of the present rates."""
    dated_revision: int = 0
    """Rises with each change of what is dated, also of what is to come."""

    sells_units: bool = False
    """Whether a `CallUnit` has a price, or had or will have one."""
    has_discounts: bool = False
    """Whether a tenant has."""

    _minimums: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """Of now, in milliseconds, as `rates`."""
    _looked_up: dict[tuple[str, str, str, int], _Terms] = field(default_factory=dict, repr=False, compare=False)
    """Present terms that were asked for."""
    _special: dict[str, list[tuple[str, PriceTerms]]] = field(default_factory=dict, repr=False, compare=False)
    """By product, what goes first first."""

    def __post_init__(self) -> None:
        if not self.configured:
            self.configured.update(self.rates)
        self._minimums.update(self._minimums_at(0.0))
        self._sort_special()

    def rate(
        self, price: str, at: float | None = None, *, purchase: str = "", region: str | None = None, ppm: int = 0
    ) -> int:
        """Nano-dollars per hour of a whole device at a unix second, by default now.

        An unknown id, which the fold counts, costs what an unknown GPU does.

        Args:
            price: the product's id.
            at: the unix second.
            purchase: how its node was bought, a `Purchase`; "" counts as on demand.
            region: where it is; None: where this process is.
            ppm: the part of the device that is sold; 0: the whole.
        """
        return self.rate_and_least(price, at, purchase=purchase, region=region, ppm=ppm)[0]

    def rate_and_least(
        self, price: str, at: float | None = None, *, purchase: str = "", region: str | None = None, ppm: int = 0
    ) -> tuple[int, int]:
        """The rate, and the nanoseconds of a device for which a start of a call is billed at least; as `rate`."""
        where, purchase = self.region if region is None else region, purchase or Purchase.ON_DEMAND.value
        if at is not None:
            return self._find_terms(price, at, purchase, where, ppm)
        asked = price, purchase, where, ppm
        terms = self._looked_up.get(asked)
        if terms is None:
            if len(self._looked_up) >= KNOWN_AT_MOST:
                self._looked_up.clear()
            terms = self._looked_up[asked] = self._find_terms(price, None, purchase, where, ppm)
        return terms

    def longest_minimum_ns(self, price: str, at: float | None = None) -> int:
        """Of a product at a unix second, by default now, however, wherever and whichever part of it is sold."""
        name = _read_price(price)[1]
        kinds = (name, *(special for special, _ in self._special.get(name, ())))
        known = name if name in self.rates else UNKNOWN_PRICE
        return max(self._minimum_at(kind, at) for kind in (known, *kinds)) * NS_PER_MS

    def changes_from(self, at: float) -> list[tuple[float, str]]:
        """When and which prices change after a unix second, in their order."""
        return sorted(
            (rate.starts_at, price) for price, rates in self.dated.items() for rate in rates if rate.starts_at > at
        )

    def discount(self, tenant: str, at: float | None = None) -> int:
        """What a tenant does not pay of a dollar at a unix second, by default now; nano-dollars."""
        if not self.has_discounts or (part := self._rate_at(f"{TENANT_PRICE}.{tenant}", at)) is None:
            return 0
        return max(0, NANO - part)

    def unit_rate(self, unit: str, at: float | None = None) -> int:
        """Nano-dollars for a million of a `CallUnit`; 0: it is not sold."""
        return self._rate_at(unit, at) or 0 if self.sells_units else 0

    def _find_terms(self, price: str, at: float | None, purchase: str, region: str, ppm: int) -> _Terms:
        times, name = _read_price(price)
        if name == WARM_PRICE:
            return 0, 0  # the memory itself has a price
        rate, is_spot, chosen = None, False, name
        for special, terms in self._special.get(name, ()):
            if terms.holds(purchase, region, ppm or WHOLE_DEVICE) and (rate := self._rate_at(special, at)) is not None:
                is_spot, chosen = bool(terms.purchase), special
                break
        if rate is None and (rate := self._rate_at(name, at)) is None:
            rate, chosen = self._rate_at(UNKNOWN_PRICE, at) or 0, UNKNOWN_PRICE
        if purchase == Purchase.SPOT and not is_spot and (part := self._rate_at(SPOT_PRICE, at)) is not None:
            rate = rate * part // NANO
        return times * rate, self._minimum_at(chosen, at) * NS_PER_MS

    def _sort_special(self) -> None:
        self._special.clear()
        for price in {*self.configured, *self.dated}:
            if not is_of_tenant(price) and (terms := price_terms(price)) is not None and terms.is_special:
                self._special.setdefault(terms.product, []).append((price, terms))
        for found in self._special.values():
            found.sort(key=lambda one: one[1].rank, reverse=True)
        self.has_discounts = any(map(is_of_tenant, (*self.configured, *self.dated)))
        self.sells_units = any(unit in self.configured or unit in self.dated for unit in UNIT_PRICES)
        self._looked_up.clear()

    def put(self, price: str, rates: Sequence[DatedRate] | None) -> None:
        """Give a price these rates over time, in place of those it had; None: the configured one again."""
        self.put_all({price: rates})

    def put_all(self, changed: Mapping[str, Sequence[DatedRate] | None]) -> None:
        """The same of several prices: there may be thousands, of which most are as before."""
        before = dict(self.dated)
        for price, rates in changed.items():
            if rates is None:
                self.dated.pop(price, None)
            else:
                self.dated[price] = tuple(sorted(rates, key=lambda rate: rate.starts_at))
        if self.dated != before:
            self.dated_revision += 1
            self._sort_special()

    def refresh(self, at: float) -> float | None:
        """Make `rates` those of the unix second `at`; returns when the next one changes, if one does."""
        now = self.configured | {name: rate for name in self.dated if (rate := self._rate_at(name, at)) is not None}
        if now != self.rates or self._minimums_at(at) != self._minimums:
            self.rates.clear()
            self.rates.update(now)
            self._minimums = self._minimums_at(at)
            self._looked_up.clear()
            self.revision += 1
        return min(
            (rate.starts_at for rates in self.dated.values() for rate in rates if rate.starts_at > at), default=None
        )

    def _rate_at(self, price: str, at: float | None) -> int | None:
        if at is None:
            return self.rates.get(price)
        rate = rate_at(self.dated.get(price, ()), at)
        return self.configured.get(price) if rate is None else rate

    def _minimum_at(self, price: str, at: float | None) -> int:
        """In milliseconds."""
        if at is None:
            return self._minimums.get(price, 0)
        found = dated_rate_at(self.dated.get(price, ()), at)
        return found.minimum_ms if found is not None else 0

    def _minimums_at(self, at: float) -> dict[str, int]:
        return {name: least for name in self.dated if (least := self._minimum_at(name, at))}

    def dollars(self, price: str, *, purchase: str = "", region: str | None = None) -> float:
        """Dollars per device hour, to compare devices by."""
        return self.rate(price, purchase=purchase, region=region) / NANO

    def knows(self, price: str) -> bool:
        """Whether it is a product's own price, and not that of any other GPU."""
        name = _read_price(price)[1]
        return name != UNKNOWN_PRICE and (name in self.rates or name in self.dated or name == WARM_PRICE)


class Charge(NamedTuple):
    """What a start of a call is billed for without having taken time for it: see `CHARGES`."""

    price: str
    ppm: int
    rate: int
    amount: int
    """Nanoseconds, or units."""


def unit_charges(units: Mapping[str, int], book: PriceBook, at: float | None = None) -> Iterator[Charge]:
    """What units cost that a call is billed for (`sold_units`), at the unix second `at`, by default now."""
    for unit in UNIT_PRICES:
        if (count := units.get(unit, 0)) and (rate := book.unit_rate(unit, at)):
            yield Charge(unit, UNIT_PPM, rate, min(count, MOST_SOLD))


def dated_rate_at(rates: Iterable[DatedRate], at: float) -> DatedRate | None:
    """The one of these rates that holds at the unix second `at`; None: none has begun."""
    begun = [rate for rate in rates if rate.starts_at <= at]
    return max(begun, key=lambda rate: rate.starts_at) if begun else None


def rate_at(rates: Iterable[DatedRate], at: float) -> int | None:
    """The same, in nano-dollars."""
    found = dated_rate_at(rates, at)
    return found.nano_usd_per_hour if found is not None else None


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
        PriceRecord(id=name, rates=book.dated.get(name, (DatedRate(nano_usd_per_hour=rate),)))
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
        dated={
            name: (_dated(path, name, entry, 0.0), *_later(path, name, entry.get("later", [])))
            for name, entry in prices.items()
            if "later" in entry or "minimum_ms" in entry
        },
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
        yield _dated(path, name, entry, starts_at)


def _dated(path: Path, name: str, entry: Any, starts_at: float) -> DatedRate:
    least = entry.get("minimum_ms", 0) if isinstance(entry, dict) else 0
    if not isinstance(least, int) or isinstance(least, bool) or not 0 <= least <= LONGEST_MINIMUM_MS:
        raise BadInput(
            f"{path}: prices.{name}: expected minimum_ms, an integer from 0 to {LONGEST_MINIMUM_MS}.",
            field=f"prices.{name}",
        )
    if least and name.partition(".")[0] in WITHOUT_MINIMUM:
        raise BadInput(
            f"{path}: prices.{name}: expected no minimum_ms, since it is no price of a device.", field=f"prices.{name}"
        )
    return DatedRate(starts_at=starts_at, nano_usd_per_hour=_rate(path, name, entry), minimum_ms=least)


def _rate(path: Path, name: str, entry: Any) -> int:
    rate = entry.get("nano_usd_per_hour") if isinstance(entry, dict) else None
    if not isinstance(rate, int) or isinstance(rate, bool) or not 0 <= rate < RATES_BELOW:
        raise BadInput(
            f"{path}: prices.{name} needs nano_usd_per_hour, an integer from 0 to {RATES_BELOW - 1}.",
            field=f"prices.{name}",
        )
    if is_of_tenant(name) and rate > NANO:
        raise BadInput(
            f"{path}: prices.{name}: expected nano_usd_per_hour from 0 to {NANO}, since a tenant pays at most 1 for "
            "each dollar of the list.",
            field=f"prices.{name}",
        )
    return rate
