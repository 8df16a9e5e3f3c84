"""Quantities as users write them and as the platform counts them.

Memory is in bytes, time in integer nanoseconds or in milliseconds (by name), a device share in parts per million
(`WHOLE_DEVICE` is a whole device), and money an exact fraction of a dollar until it is printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import msgspec

from pilotlight_core.model.errors import BadInput

WHOLE_DEVICE = 1_000_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NS_PER_HOUR = 3_600 * NS_PER_S

MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)\s*", re.IGNORECASE)
SCALES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
SCALES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
GPU = re.compile(r"([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)(?::([1-9]\d?))?")

MAX_GPU = 64
CLOCK_SLACK_MS = 1_000.0
"""A time that a node has measured may be so much longer than ours: the clocks differ, and messages need time."""

UNIT_PRICES = ("prompt_tokens", "completion_tokens", "cached_tokens", "images", "seconds", "custom")
"""The price ids of what functions count (`CallUnit`), for a million of each."""
MOST_SOLD = 10**10
"""Of one kind in one call more is not billed: ten thousand calls a second may count it, and their sum of a day has room
in the ledger's columns."""


def most_gpu_ms(elapsed_ms: float) -> float:
    """The most GPU-milliseconds that one container can have used in the time, whatever its node says."""
    return (elapsed_ms + CLOCK_SLACK_MS) * MAX_GPU


def parse_memory(text: str | int, field: str) -> int:
    """Bytes of `"10GiB"`, `"512MiB"`, `"1.5GB"`; an int is MiB, as in Modal.

    Raises:
        BadInput: naming `field`.
    """
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text * 2**20
    found = MEMORY.fullmatch(text) if isinstance(text, str) else None
    if found is None or not float(found[1]):
        raise BadInput(f'{field}={text!r} is not an amount of memory: expected "10GiB" or MiB as an int.', field=field)
    return int(Decimal(found[1]) * SCALES[found[2].lower()])


def memory_text(size: int) -> str:
    """`"10 GiB"`: exact, in the largest unit of which it is a whole number."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and not size % SCALES[unit.lower()]:
            return f"{size // SCALES[unit.lower()]} {unit}"
    return f"{size} B"


class GpuAsk(msgspec.Struct, frozen=True):
    """One acceptable GPU: its type in capitals ("H100", "A100-80GB", "ANY") and the number of devices."""

    type: str
    count: int = 1

    def __str__(self) -> str:
        return self.type if self.count == 1 else f"{self.type}:{self.count}"


def parse_gpu(text: str) -> GpuAsk:
    """Parse "H100" or "H100:2".

    Raises:
        BadInput: if it is neither.
    """
    found = GPU.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadInput(f'gpu={text!r} is not a GPU: expected "H100", "H100:2", or a list of these.', field="gpu")
    return GpuAsk(type=found[1].upper(), count=int(found[2] or 1))


def is_gpu(ask: GpuAsk) -> bool:
    """Whether `parse_gpu` could have returned it: 1 to 99 GPUs of a type with a valid name."""
    found = GPU.fullmatch(str(ask))
    return found is not None and (found[1], int(found[2] or 1)) == (ask.type, ask.count) and len(ask.type) < MAX_GPU


NANO_USD = 10**9
COST_UNITS = WHOLE_DEVICE * NS_PER_HOUR * NANO_USD * NANO_USD
"""Of a dollar: nanoseconds times millionths times nano-dollars an hour times what is paid of a dollar."""


def cost_of(ns: int, ppm: int, nano_usd_per_hour: int, discount: int = 0) -> Fraction:
    """Exact dollars for `ns` nanoseconds of `ppm` millionths of a device at a price per device hour.

    Exact, so that receipts sum to the report in any order; only the printed amount is rounded. `discount`: nano-dollars
    of each dollar that are not paid.
    """
    return Fraction(ns * ppm * nano_usd_per_hour * (NANO_USD - discount), COST_UNITS)


def money(amount: Fraction, places: int = 12) -> str:
    """Dollars as a decimal string, rounded half-even to `places` digits."""
    exact = Decimal(amount.numerator) / Decimal(amount.denominator)
    return format(exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN), "f")


def units_money(units: int, places: int = 12) -> str:
    """`money` of so many `COST_UNITS`, in integers: reports have hundreds of thousands of lines."""
    one = COST_UNITS // 10**places  # of the last digit: without a rest, since a dollar is 36 * 10**26 of them
    whole, rest = divmod(abs(units), one)
    if 2 * rest >= one:
        whole += 2 * rest > one or whole & 1
    digits = str(whole).zfill(places + 1)
    return f"{'-' if units < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def shown_money(amount: Fraction | float | str) -> str:
    """Dollars for people: `0.0123`, `1.23`, `1,235`: of four significant digits those that say something."""
    value = float(amount)
    if value and abs(value) < 1:
        return f"{float(f'{value:.3g}'):.15f}".rstrip("0")
    return f"{value:,.2f}" if abs(value) < 1_000 else f"{float(f'{value:.4g}'):,.0f}"


def split_evenly(total: int, parts: int) -> list[int]:
    """`total` as `parts` integers that differ by at most one and sum to it (largest remainder method)."""
    share, rest = divmod(total, parts)
    return [share + 1] * rest + [share] * (parts - rest)


def rate(per_second: float) -> str:
    """`1.656`, `396.2`, `1,047,000`: four significant digits without an exponent."""
    return f"{float(f'{per_second:.4g}'):,.0f}" if per_second >= 1000 else f"{per_second:.4g}"


def duration_text(seconds: float) -> str:
    """A duration for a sentence: `280 ms`, `12 s`, `3 min`, `2 h`, `5 days`."""
    if 0.0 < seconds < 2.0:
        return f"{seconds * 1000.0:.0f} ms"
    for unit, length in (("days", 2 * 86_400), ("h", 2 * 3_600), ("min", 2 * 60)):
        if seconds >= length:
            return f"{seconds / (length / 2):.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def most_units_fault(most: Mapping[str, int]) -> str:
    """Why these are no bounds of what one call is billed, naming the first that is wrong; "": they are."""
    for name, count in most.items():
        if name not in UNIT_PRICES:
            return f"there is no unit {name!r}: expected some of {', '.join(UNIT_PRICES)}"
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_SOLD:
            return f"{name} must be a whole number from 1 to {MOST_SOLD}, not {count!r:.40}"
    return ""


def sold_units(units: Mapping[str, int], most: Mapping[str, int]) -> dict[str, int]:
    """What of counted units is billed where they have a price: of those that have a most, no more than that."""
    return {name: min(count, most[name]) for name, count in units.items() if name in most}
