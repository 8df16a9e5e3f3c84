"""Numbers of the API as people read them. Pure. What is shown is the API's number, rounded by these rules alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

NOTHING = "–"


def count_text(value: float | None) -> str:
    """A count, with commas."""
    return NOTHING if value is None else f"{value:,.0f}"


def number_text(value: float | None, digits: int = 3) -> str:
    """A number, with so many significant digits."""
    if value is None:
        return NOTHING
    return f"{float(f'{value:.{digits}g}'):,g}" if abs(value) < 1e6 else f"{value:,.0f}"


def part_text(value: float | None) -> str:
    """A part of one, in percent."""
    return NOTHING if value is None else f"{value * 100:.1f} %"


def time_text(ms: float | None) -> str:
    """A time of so many milliseconds."""
    if ms is None:
        return NOTHING
    if ms < 1:
        return f"{ms * 1000:.0f} µs" if ms else "0"
    if ms < 1_000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    if seconds < 3_600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds < 86_400:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{int(seconds // 86400)} d {int(seconds % 86400 // 3600)} h"


def bytes_text(value: float | None) -> str:
    """So many bytes."""
    if value is None:
        return NOTHING
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} B"


def money_text(text: str | None, currency: str = "") -> str:
    """An amount, which the API writes as text so that none of it is lost: to hundredths, small ones to three digits."""
    try:
        amount = Decimal(text or "0")
    except InvalidOperation:
        return NOTHING
    shown = f"{amount:,.2f}" if abs(amount) >= 1 or not amount else f"{float(f'{amount:.3g}'):.10f}".rstrip("0")
    return f"{shown} {currency}".strip()


def instant_text(at: float | None) -> str:
    """A unix second, in UTC."""
    return NOTHING if not at else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its word."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short_text(text: str, most: int) -> str:
    """A text of at most so many characters, and a mark where it goes on."""
    return text if len(text) <= most else f"{text[:most]} …"


def text_at(value: Mapping[str, Any], name: str) -> str:
    """A field as text; "" where there is none."""
    found = value.get(name)
    return "" if found is None else str(found)
