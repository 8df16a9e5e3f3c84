"""Usage reports: what one is grouped by, its sums, its text. `usage_queries` reads the ledger for it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.call_api import UsageLine
from pilotlight_core.model.devices import HOST_PRICES
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import MOST_TAGS, TAG
from pilotlight_core.model.units import WHOLE_DEVICE, cost_of, money

GROUPS = ("day", "app", "function", "version", "state", "price", "ppm")
"""The dimensions of a line; one without grouping is "" (`ppm`: 0)."""
BY_TAG = "tag:"
"""Before the name of a tag, which is a dimension too."""
COLUMNS = tuple(field.name for field in msgspec.structs.fields(UsageLine) if field.name != "tags")


class UsageTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of a report's unrounded lines; `ns` and `gpu_seconds` are of devices alone."""

    calls: int
    ns: int
    gpu_seconds: float
    cost: str
    currency: str = "USD"


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/usage`."""

    lines: tuple[UsageLine, ...]
    total: UsageTotal


def read_groups(text: str) -> tuple[str, ...]:
    """The dimensions in text such as `day,function` or `tag:team`; all of GROUPS for "".

    Raises:
        BadInput: names an unknown dimension.
    """
    asked = [part.strip() for part in text.split(",") if part.strip()]
    for part in asked:
        if part not in GROUPS and not (part.startswith(BY_TAG) and TAG.fullmatch(part.removeprefix(BY_TAG))):
            expected = f"expected some of {', '.join(GROUPS)}, or {BY_TAG}NAME"
            raise BadInput(f"usage cannot be grouped by {part!r}: {expected}.", field="group")
    tags = dict.fromkeys(part for part in asked if part not in GROUPS)
    if len(tags) > MOST_TAGS:
        raise BadInput(f"usage cannot be grouped by {len(tags)} tags: expected at most {MOST_TAGS}.", field="group")
    return (*(name for name in GROUPS if name in asked), *tags) if asked else GROUPS


def summarise(rows: Iterable[dict[str, Any]], groups: Sequence[str], currency: str) -> UsageReport:
    """Report lines of `usage_day` rows, ordered by group and each rounded once."""
    sums: dict[tuple[Any, ...], list[Any]] = {}
    tags = tags_in(groups)
    by_price, total = "price" in groups, [0, 0, 0, Fraction(0)]
    for row in rows:
        tagged = msgspec.json.decode(row["tags"]) if tags and row["tags"] else {}
        key = (
            *(row[name] if name in groups else _blank(name) for name in GROUPS),
            *(tagged.get(name, "") for name in tags),
        )
        line = sums.setdefault(key, [0, 0, 0, Fraction(0)])
        _add(line, row, is_timed=by_price or row["price"] not in HOST_PRICES)
        _add(total, row, is_timed=row["price"] not in HOST_PRICES)
    lines = tuple(
        UsageLine(
            **dict(zip(GROUPS, key, strict=False)),
            calls=calls,
            ns=ns,
            gpu_seconds=_device_seconds(ns_ppm),
            cost=money(cost),
            currency=currency,
            tags=dict(zip(tags, key[len(GROUPS) :], strict=True)) if tags else UNSET,
        )
        for key, (calls, ns, ns_ppm, cost) in sorted(sums.items())
    )
    return UsageReport(lines=lines, total=_total(total, currency))


def as_csv(report: UsageReport, groups: Sequence[str] = GROUPS) -> str:
    """The report as CSV, with a column for each tag that it is grouped by."""
    tags = tags_in(groups)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*COLUMNS, *(f"{BY_TAG}{name}" for name in tags)])
    writer.writerows(
        [*(getattr(line, name) for name in COLUMNS), *(line.tags[name] for name in tags if line.tags)]
        for line in report.lines
    )
    return out.getvalue()


def tags_in(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix(BY_TAG) for name in groups if name.startswith(BY_TAG))


def _blank(name: str) -> str | int:
    return 0 if name == "ppm" else ""


def _device_seconds(ns_ppm: int) -> float:
    return ns_ppm / (WHOLE_DEVICE * 10**9)


def _add(line: list[Any], row: dict[str, Any], *, is_timed: bool) -> None:
    """Add a row; time of a core or of a GiB is none of the device's."""
    line[0] += row["calls"]
    line[1] += row["ns"] if is_timed else 0
    line[2] += row["ns"] * row["ppm"] if is_timed else 0
    line[3] += cost_of(row["ns"], row["ppm"], row["rate"])


def _total(line: list[Any], currency: str) -> UsageTotal:
    calls, ns, ns_ppm, cost = line
    return UsageTotal(calls=calls, ns=ns, gpu_seconds=_device_seconds(ns_ppm), cost=money(cost), currency=currency)
