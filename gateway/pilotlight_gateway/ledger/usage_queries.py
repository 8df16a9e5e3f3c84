"""What the ledger says of a tenant, or of all: sums of usage, and receipts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import sqlalchemy as sa

from pilotlight_core.model.api.billing_api import LateLine
from pilotlight_core.model.api.receipt_api import CallReceipt, ReceiptLine
from pilotlight_core.model.devices import BESIDE_PRICES
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.pipelines.pipeline import hook_place
from pilotlight_core.model.units import COST_UNITS, NANO_USD, NS_PER_S, WHOLE_DEVICE, cost_of, money
from pilotlight_gateway.ledger.attribution import OPERATOR
from pilotlight_gateway.ledger.bulk_rows import listed, with_lists
from pilotlight_gateway.ledger.ledger_entries import cut_at_hours
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import (
    call_receipt,
    cold_start,
    correction_line,
    lease_line,
    nested_call,
    receipt_line,
    receipt_terms,
    usage_day,
    usage_hour,
    version_tags,
)
from pilotlight_gateway.ledger.usage_report import (
    EVERY_GROUP,
    GROUPS,
    LISTED,
    UsageReport,
    UsageRow,
    summarise,
    tags_in,
)

GIB = 2**30
MOST_LINES = 1_000
"""Of one receipt: of a call that runs for a month, over many prices."""
MOST_NESTED = 1_000
"""Ids of calls that a call has made, in its receipt."""
TAGS = "tags"
"""In groups: all tags of a version, as the JSON that the ledger has."""
HOST_COLUMNS = ("core_ppm", "core_rate", "gib_ppm", "gib_rate")
DAYS_NAMED = 400
"""Of more days all are read at once, whosever they are."""
DAYS_BY_HOUR, DAYS_BY_DAY = 1, 31
"""Days that are read at once."""
ORDER = {"hour": 0, "key": 1}
"""Of what sums are grouped by: the table's own first, then what differs most."""
DAY = len("2026-11-20")
"""Characters of an hour that name its day."""
LATE = "late"
"""Why a line is in a later invoice: it came when its day was closed."""
BY_ROW = frozenset({"hour", "key"})
"""What nearly all rows of a tenant differ in."""
BY_HOUR = frozenset({"hour", "key", "purpose", "purchase", "region"})
"""What the sums by day do not know."""


def call_receipt_of(ledger: Ledger, tenant: str, call_id: str) -> CallReceipt | None:
    """A call's receipt; None: there is none, or none yet. Blocks: call it in a thread."""
    rows = receipts(ledger, tenant, call_id)
    if not rows:
        return None
    starts = ledger.read(sa.select(cold_start).where(cold_start.c.call_id == call_id, cold_start.c.tenant == tenant))
    parent, made = nested_call.c.parent, nested_call.c.call_id
    of_tenant = nested_call.c.tenant == tenant
    above = ledger.read(sa.select(parent).where(made == call_id, of_tenant))
    below = ledger.read(sa.select(made).where(parent == call_id, of_tenant).order_by(made).limit(MOST_NESTED))
    of_device = [row for row in rows if row["price"] not in BESIDE_PRICES]
    return CallReceipt(
        id=call_id,
        lines=tuple(map(_line, rows)),
        cost=money(sum((row["cost"] for row in rows), Fraction(0))),
        gpu_seconds=sum(row["ns"] * row["ppm"] for row in of_device) / (WHOLE_DEVICE * NS_PER_S),
        vram_gib_seconds=sum(row["ns"] * row["memory"] for row in of_device) / (GIB * NS_PER_S),
        key=next((row["key_id"] for row in rows if row["key_id"]), ""),
        cold_start_ms=sum(start["us"] for start in starts) / 1000.0,
        cold_start_billed=any(start["billed"] for start in starts),
        parent=above[0]["parent"] if above else "",
        nested=tuple(row["call_id"] for row in below),
        currency=ledger.book.currency,
    )


def _line(row: dict[str, Any]) -> ReceiptLine:
    function, stage = hook_place(row["function"])
    return ReceiptLine(
        day=row["day"],
        function=f"{row['app']}.{function}",
        stage=stage,
        version=row["version"],
        price=row["price"],
        ppm=row["ppm"],
        usd_per_hour=f"{Decimal(row['rate']).scaleb(-9).normalize():f}",
        discount=f"{Decimal(row['discount']).scaleb(-9).normalize():f}",
        ns=row["ns"],
        cost=money(row["cost"]),
        memory=row["memory"],
        outcome=row["outcome"],
        fault=row["fault"] or "",
        batch_size=row["batch_size"],
        units=msgspec.json.decode(row["units"]) if row["units"] else {},
        tags=msgspec.json.decode(row["tags"]) if row["tags"] else {},
    )


def usage_report(
    ledger: Ledger, tenant: str | None, first: str, until: str, groups: Sequence[str] = GROUPS
) -> UsageReport:
    """A tenant's usage, or for None everybody's, of the days from `first` to before `until`. Blocks."""
    # Where nearly every row is a line, adding up in the database too would take as long again.
    are_lists = {*groups} >= BY_ROW
    names, rows = _read_sums(ledger, tenant, first, until, groups, is_summed=not are_lists)
    return summarise(names, rows, groups, ledger.book.currency, are_lists=are_lists)


def usage_sums(ledger: Ledger, tenant: str | None, first: str, until: str, groups: Sequence[str]) -> Iterator[UsageRow]:
    """The sums of the days from `first` to before `until`, by day, by what `groups` name, and by price, ppm, rate and
    discount.

    They are read by hour where `groups` ask for what only hours know. Blocks: call it in a thread.

    Args:
        ledger: where they are.
        tenant: whose they are; None: everybody's, and the operator's own.
        first: the first day.
        until: the day after the last.
        groups: dimensions (`usage_report.EVERY_GROUP`), and tags.
    """
    names, rows = _read_sums(ledger, tenant, first, until, groups)
    for row in rows:
        found = dict(zip(names, row, strict=True))
        found["ns"], found["calls"] = int(found["ns"]), int(found["calls"])
        found.setdefault("day", found.get("hour", "")[:DAY])
        yield found


def _read_sums(
    ledger: Ledger, tenant: str | None, first: str, until: str, groups: Sequence[str], *, is_summed: bool = True
) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
    """The names and the values of what `usage_sums` says. An hour has its day in it, and is not grouped by it too.

    `is_summed`: else the ledger's own rows are read, of which several may be alike; each hour's in lists (`LISTED`).
    """
    table = usage_hour if BY_HOUR & {*groups} else usage_day
    columns, tagged = table.c, bool(tags_in(groups)) or TAGS in groups
    at = columns.hour if table is usage_hour else columns.day
    named: dict[str, sa.ColumnElement[Any]] = dict(columns.items())
    if table is usage_hour:
        named["day"] = sa.func.substr(at, sa.literal_column("1"), sa.literal_column(str(DAY)))
        named["key"] = columns.key_id
    always = ("price", "ppm", "rate", "discount") if "hour" in groups else ("day", "price", "ppm", "rate", "discount")
    asked = [name for name in EVERY_GROUP if name in groups and name not in ("day", "gpu", *always)]
    by: list[sa.ColumnElement[Any]] = [named[name].label(name) for name in (*always, *asked)]
    by += [version_tags.c.tags] if tagged else []
    if is_summed:
        sums = (sa.func.sum(columns.ns).label("ns"), sa.func.sum(columns.calls).label("calls"))
        # PostgreSQL then sorts the rows of each hour, and not all of a day by what few of them differ in.
        in_order = sorted(by, key=lambda column: ORDER.get(column.name, len(ORDER)))
        query = sa.select(*by, *sums).group_by(*in_order)
    else:
        by = [column for column in by if column.name != "key"]
        query = sa.select(*by, *listed(ledger.dialect, (columns.key_id, columns.ns, columns.calls)))
        query = query.group_by(*sorted(by, key=lambda column: ORDER.get(column.name, len(ORDER))))
    if tagged:
        same = sa.and_(version_tags.c.tenant == columns.tenant, version_tags.c.version == columns.version)
        query = query.outerjoin_from(table, version_tags, same)
    if tenant is not None:
        query = query.where(columns.tenant == tenant)
    names, by_hour = tuple(query.selected_columns.keys()), table is usage_hour
    parts = _parts(first, until, DAYS_BY_HOUR if by_hour else DAYS_BY_DAY)
    rows: Iterable[Sequence[Any]] = ledger.read_parts(
        query.where(_within(at, part, tenant, by_hour=by_hour)) for part in parts
    )
    if not is_summed:
        names, rows = (*names[: len(by)], *LISTED), with_lists(rows, len(LISTED))
    if "hour" in groups and "day" in groups:
        at_hour = names.index("hour")
        return ("day", *names), ((row[at_hour][:DAY], *row) for row in rows)
    return names, rows


def _parts(first: str, until: str, length: int) -> list[tuple[str, str]]:
    """The days from `first` to before `until` in parts: sums are by day at least, and of few days a database sorts rows
    in memory. Whatever is asked for, there are not many."""
    begin, end = (date.fromisoformat(day) for day in (first, until))
    if (end - begin).days > DAYS_NAMED:
        return [(first, until)]
    firsts = [begin + timedelta(days=number) for number in range(0, (end - begin).days, length)]
    return [(one.isoformat(), min(end, one + timedelta(days=length)).isoformat()) for one in firsts]


def _within(
    at: sa.ColumnElement[str], part: tuple[str, str], tenant: str | None, *, by_hour: bool
) -> sa.ColumnElement[bool]:
    """That a row is of the days of a part. The tables begin with them: named, other tenants' rows are not read."""
    first, until = part
    named = _periods(first, until, by_hour=by_hour) if tenant is not None else []
    return sa.and_(at >= first, at < until, *([at.in_(named)] if named else []))


def device_sums(ledger: Ledger, first: str, until: str) -> list[dict[str, Any]]:
    """What each device was metered for in the days from `first` to before `until`, by the day of an interval's end.

    Of each price, ppm, rate and discount: `is_rest`, outside all slices; `is_sold`, to a tenant; `host_cost`, of cores
    and memory, before the discount; `is_given_back`, what corrections have given back of it. Lines are kept for 100
    days. Blocks: call it in a thread.
    """
    columns = lease_line.c
    is_rest, is_sold = columns.slice == columns.device + ".rest", columns.tenant != OPERATOR
    by = (
        *(columns[name] for name in ("node", "device", "price", "ppm", "rate", "discount", *HOST_COLUMNS)),
        is_rest.label("is_rest"), is_sold.label("is_sold"),
    )  # fmt: skip
    query = (
        sa.select(*by, sa.func.sum(columns.ns).label("ns"))
        .where(columns.day >= first, columns.day < until)
        .where(columns.wall >= _unix_s(first), columns.wall <= _unix_s(until))
        .group_by(*by)
    )
    found = [row | {"is_given_back": False} for row in ledger.read(query)]
    found += [row | {"is_given_back": True} for row in ledger.read(_given_back(first, until))]
    return [row | {"ns": int(row["ns"]), "host_cost": _host_cost(row)} for row in found]


def _given_back(first: str, until: str) -> sa.Select[Any]:
    """By device: a correction names the event that showed it, whose container was on one."""
    line, shown_by, terms = correction_line.c, lease_line.c, receipt_terms.c
    of_terms = (terms[name] for name in ("price", "ppm", "rate", "discount", *HOST_COLUMNS))
    by = (shown_by.node, shown_by.device, *of_terms)
    return (
        sa.select(*by, sa.false().label("is_rest"), sa.true().label("is_sold"), sa.func.sum(line.ns).label("ns"))
        .join(lease_line, shown_by.id == line.corrects)
        .join(receipt_terms, terms.id == line.terms)
        .where(line.of_day >= first, line.of_day < until)
        .group_by(*by)
    )


def _host_cost(row: dict[str, Any]) -> int:
    parts = ((row["core_ppm"], row["core_rate"]), (row["gib_ppm"], row["gib_rate"]))
    return sum(int(row["ns"]) * (ppm or 0) * (rate or 0) for ppm, rate in parts)


def _periods(first: str, until: str, *, by_hour: bool) -> list[str]:
    """All days, or all hours and what was folded by day alone; nothing if they are too many to name."""
    begin, end = (datetime.fromisoformat(day).date() for day in (first, until))
    if (count := (end - begin).days) > DAYS_NAMED:
        return []
    days = [(begin + timedelta(days=number)).isoformat() for number in range(count)]
    return days + [f"{day}T{hour:02}" for day in days for hour in range(24)] if by_hour else days


def _unix_s(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


def late_lines(ledger: Ledger, tenant: str, first: str, until: str) -> list[LateLine]:
    """What is booked in the days from `first` to before `until` and is of days before. Blocks: call it in a thread.

    Usage that came late names its own day, and a correction the day that it corrects.
    """
    sums: dict[tuple[str, str], int] = {}
    for sign, day, row in _late_rows(ledger, tenant, first, until):
        which = day, row.get("why", LATE)
        paid = NANO_USD - (row["discount"] or 0)
        cost = (int(row["ns"]) * row["ppm"] * row["rate"] + _host_cost(row)) * paid
        sums[which] = sums.get(which, 0) + sign * cost
    return [
        LateLine(day=day, why=why, cost=money(Fraction(cost, COST_UNITS))) for (day, why), cost in sorted(sums.items())
    ]


def _late_rows(ledger: Ledger, tenant: str, first: str, until: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """1 or -1, the day, and the time: of containers without calls from their lines, of calls from their receipts, which
    have what each of several tenants pays, and what it is charged beside its time."""
    terms, line, late = receipt_terms.c, correction_line.c, lease_line.c
    of_terms = (terms.ppm, terms.rate, terms.discount, *(terms[name] for name in HOST_COLUMNS))
    waited = sa.select(
        late.wall_ns, late.booked_from, late.ns, late.ppm, late.rate, late.discount,
        *(late[name] for name in HOST_COLUMNS),
    ).where(
        late.tenant == tenant, late.state != LeaseState.BUSY, late.booked_from >= first, late.booked_from < until
    )  # fmt: skip
    for row in ledger.read(waited):
        for hour, ns in cut_at_hours(row["wall_ns"], row["ns"]):
            if hour < first:
                yield 1, hour[:DAY], row | {"ns": ns}
    called = (
        sa.select(terms.of_day.label("day"), *of_terms, sa.func.sum(call_receipt.c.ns).label("ns"))
        .join(call_receipt, call_receipt.c.terms == terms.id)
        .where(terms.tenant == tenant, terms.day >= first, terms.day < until, terms.of_day != "", terms.of_day < first)
        .group_by(terms.of_day, *of_terms)
    )
    given = (
        sa.select(line.of_day.label("day"), line.why, line.ns, *of_terms)
        .join(receipt_terms, terms.id == line.terms)
        .where(line.tenant == tenant, line.day >= first, line.day < until, line.of_day < first)
    )
    for sign, query in ((1, called), (-1, given)):
        yield from ((sign, row["day"], row) for row in ledger.read(query))


def receipts(ledger: Ledger, tenant: str, call_id: str) -> list[dict[str, Any]]:
    """The lines of a call's receipt, with `cost` in dollars as a Fraction. Blocks: call it in a thread."""
    own = sa.select(receipt_line).where(receipt_line.c.call == call_id, receipt_line.c.tenant == tenant)
    rows = ledger.read(own.order_by(receipt_line.c.day, receipt_line.c.ns.desc()).limit(MOST_LINES))
    return [row | {"cost": cost_of(row["ns"], row["ppm"], row["rate"], row["discount"])} for row in rows]
