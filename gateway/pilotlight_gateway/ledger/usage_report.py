"""Usage reports: what one is grouped by, its sums, its text. `usage_queries` reads the ledger for it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.billing_api import ThresholdLine
from pilotlight_core.model.api.call_api import UsageLine
from pilotlight_core.model.devices import BESIDE_PRICES, gpu_of_price
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import MOST_TAGS, TAG
from pilotlight_core.model.units import NANO_USD, UNIT_PRICES, WHOLE_DEVICE, units_money

GROUPS = ("day", "app", "function", "version", "state", "price", "ppm")
"""The dimensions that a report has by default; one without grouping is "" (`ppm`: 0)."""
MORE_GROUPS = ("hour", "tenant", "key", "gpu", "purpose", "purchase", "region")
"""Those that are asked for; without grouping they are left out."""
EVERY_GROUP = (*GROUPS, *MORE_GROUPS)
BY_TAG = "tag:"
"""Before the name of a tag, which is a dimension too."""
COLUMNS = tuple(field.name for field in msgspec.structs.fields(UsageLine) if field.name not in ("tags", *MORE_GROUPS))
TERMS = ("price", "ppm", "rate", "discount")
LISTED = ("key", "ns", "calls")
"""What is listed of the rows of a group, in this order, where nearly every row is a line."""
UsageSums = dict[Any, list[int]]
"""By key: calls, nanoseconds of devices (or of what the price is of), the same times their parts, and the cost."""
UsageRow = Mapping[str, Any]
"""A sum of the ledger: the dimensions that were asked for, with `price`, `ppm`, `rate`, `discount`, `ns` and
`calls`."""


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
    thresholds: tuple[ThresholdLine, ...] | msgspec.UnsetType = UNSET
    """Those of budgets that were reached in these days, the first first; unset: none was."""


def read_groups(text: str, *, all_tenants: bool = False) -> tuple[str, ...]:
    """The dimensions in text such as `day,function` or `tag:team`; all of GROUPS for "".

    Args:
        text: the names, with commas.
        all_tenants: whether the report is of all tenants, which can be told apart then.

    Raises:
        BadInput: names an unknown dimension.
    """
    known = EVERY_GROUP if all_tenants else tuple(name for name in EVERY_GROUP if name != "tenant")
    asked = [part.strip() for part in text.split(",") if part.strip()]
    for part in asked:
        if part not in known and not (part.startswith(BY_TAG) and TAG.fullmatch(part.removeprefix(BY_TAG))):
            expected = f"expected some of {', '.join(known)}, or {BY_TAG}NAME"
            raise BadInput(f"usage cannot be grouped by {part!r}: {expected}.", field="group")
    tags = dict.fromkeys(part for part in asked if part not in known)
    if len(tags) > MOST_TAGS:
        raise BadInput(f"usage cannot be grouped by {len(tags)} tags: expected at most {MOST_TAGS}.", field="group")
    if asked:
        return (*(name for name in known if name in asked), *tags)
    return (*GROUPS, "tenant") if all_tenants else GROUPS


def summarise(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    groups: Sequence[str],
    currency: str,
    *,
    are_lists: bool = False,
) -> UsageReport:
    """Report lines of the ledger's sums, ordered by group and each rounded once.

    Args:
        names: the columns of `rows`: those that `groups` need, and `price`, `ppm`, `rate`, `discount`, `ns`, `calls`.
        rows: plain, since a report may be of hundreds of thousands.
        groups: of the report.
        currency: of its costs.
        are_lists: whether `rows` end with lists of `LISTED`, which `names` end with.
    """
    more, tags = [name for name in MORE_GROUPS if name in groups], tags_in(groups)
    known = (*GROUPS, *more)
    shown = [name for name in known if name in groups]
    key_of, by_price = _key_reader(names, shown, tags), "price" in groups
    if are_lists:
        sums = _add_lists(names, rows, key_of, shown.index("key"), by_price=by_price)
    else:
        sums = _add_up(names, rows, key_of, by_price=by_price)
    fields: dict[str, Any] = {name: _blank(name) for name in known if name not in groups} | {"currency": currency}
    measured = (*shown, "calls", "ns", "gpu_seconds", "cost")
    lines: list[UsageLine] = []
    for key in sorted(sums):
        calls, ns, ns_ppm, cost = sums[key]
        fields.update(
            zip(measured, (*key[: len(shown)], calls, ns, device_seconds(ns_ppm), units_money(cost)), strict=True)
        )
        if tags:
            fields["tags"] = dict(zip(tags, key[len(shown) :], strict=True))
        lines.append(UsageLine(**fields))
    price = shown.index("price") if "price" in groups else -1
    of_devices = [line for key, line in sums.items() if price < 0 or key[price] not in BESIDE_PRICES]
    total = [sum(line[0] for line in sums.values()), *(sum(line[place] for line in of_devices) for place in (1, 2))]
    return UsageReport(
        lines=tuple(lines), total=_total([*total, sum(line[3] for line in sums.values())], currency)
    )  # fmt: skip


def _add_up(
    names: Sequence[str], rows: Iterable[Sequence[Any]], key_of: Callable[[Sequence[Any]], Any], *, by_price: bool
) -> UsageSums:
    terms_of = itemgetter(*(names.index(name) for name in TERMS))
    amounts_of = itemgetter(names.index("ns"), names.index("calls"))
    weights: dict[Any, tuple[int, bool, int]] = {}
    sums: UsageSums = {}
    for row in rows:
        terms = terms_of(row)
        weight = weights.get(terms)
        if weight is None:
            weight = weights[terms] = _weight_of(terms, by_price=by_price)
        per_ns, is_told, ppm = weight
        ns, calls = amounts_of(row)
        ns, key = int(ns), key_of(row)
        line = sums.get(key)
        if line is None:
            line = sums[key] = [0, 0, 0, 0]
        line[3] += ns * per_ns
        if calls:
            line[0] += int(calls)
        if is_told:
            line[1] += ns
            line[2] += ns * ppm
    return sums


def _add_lists(
    names: Sequence[str], rows: Iterable[Sequence[Any]], key_of: Callable[[Sequence[Any]], Any], place: int, *,
    by_price: bool,
) -> UsageSums:  # fmt: skip
    """As `_add_up`, of rows that end with lists of `LISTED`; keys are at a `place` of what is grouped by."""
    terms_of = itemgetter(*(names.index(name) for name in TERMS))
    groups: dict[Any, dict[str, list[int]]] = {}
    for row in rows:
        per_ns, is_told, ppm = _weight_of(terms_of(row), by_price=by_price)
        lines = groups.setdefault(key_of((*row[: -len(LISTED)], "")), {})
        for key, ns, calls in zip(*row[-len(LISTED) :], strict=True):
            line = lines.get(key)
            if line is None:
                line = lines[key] = [0, 0, 0, 0]
            line[3] += ns * per_ns
            line[0] += calls
            if is_told:
                line[1] += ns
                line[2] += ns * ppm
    return {
        (*group[:place], key, *group[place + 1 :]): line
        for group, lines in groups.items()
        for key, line in lines.items()
    }


def _weight_of(terms: Any, *, by_price: bool) -> tuple[int, bool, int]:
    """What a nanosecond costs, whether its time is told, and the part of a device that it is of."""
    price, ppm, rate, discount = terms
    is_told = by_price or price not in BESIDE_PRICES  # time of a core or of a GiB is none of the device's
    return ppm * rate * (NANO_USD - discount), is_told, ppm if price not in UNIT_PRICES else 0


def _key_reader(names: Sequence[str], shown: Sequence[str], tags: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """What reads the values of a row in the dimensions `shown`, and behind them those of `tags`, as a tuple."""
    places = [names.index("price" if name == "gpu" else name) for name in shown]
    plain: Callable[[Sequence[Any]], Any] = (
        itemgetter(*places) if len(places) > 1 else lambda row: tuple([row[place] for place in places])
    )
    if not tags and "gpu" not in shown:
        return plain
    gpu_at, tags_at = shown.index("gpu") if "gpu" in shown else -1, names.index("tags") if tags else -1

    def read(row: Sequence[Any]) -> tuple[Any, ...]:
        key = list(plain(row))
        if gpu_at >= 0:
            key[gpu_at] = _gpu_of(key[gpu_at])
        if tags:
            tagged = msgspec.json.decode(row[tags_at]) if row[tags_at] else {}
            key += [tagged.get(name, "") for name in tags]
        return tuple(key)

    return read


def columns_of(groups: Sequence[str]) -> tuple[str, ...]:
    """The columns of a report as a table: those of every report, and what it is grouped by beside them."""
    more = [name for name in MORE_GROUPS if name in groups]
    return (*COLUMNS, *more, *(f"{BY_TAG}{name}" for name in tags_in(groups)))


def cells_of(line: UsageLine, groups: Sequence[str]) -> tuple[Any, ...]:
    """The values of a line in `columns_of`."""
    more = [getattr(line, name) for name in MORE_GROUPS if name in groups]
    tags = line.tags or {}
    return (*(getattr(line, name) for name in COLUMNS), *more, *(tags[name] for name in tags_in(groups)))


def as_csv(report: UsageReport, groups: Sequence[str] = GROUPS) -> str:
    """The report as CSV, with a column for each tag that it is grouped by."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns_of(groups))
    writer.writerows(cells_of(line, groups) for line in report.lines)
    return out.getvalue()


def tags_in(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix(BY_TAG) for name in groups if name.startswith(BY_TAG))


def device_seconds(ns_ppm: int) -> float:
    """Seconds of a whole device."""
    return ns_ppm / (WHOLE_DEVICE * 10**9)


def cost_units(row: UsageRow) -> int:
    """What a row costs, in `COST_UNITS` of a dollar: exact, and quicker than a fraction."""
    return int(row["ns"] * row["ppm"] * row["rate"] * (NANO_USD - row["discount"]))


@lru_cache(1_024)
def _gpu_of(price: str) -> str:
    return gpu_of_price(price)


def _blank(name: str) -> str | int:
    return 0 if name == "ppm" else ""


def _total(line: list[int], currency: str) -> UsageTotal:
    calls, ns, ns_ppm, cost = line
    return UsageTotal(calls=calls, ns=ns, gpu_seconds=device_seconds(ns_ppm), cost=units_money(cost), currency=currency)
