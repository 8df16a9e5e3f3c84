"""Recomputes the ledger's sums from its lines, in one snapshot, and names the first that differs.

devices   no instant of a device is in lines of more than the device, of one boot of its node
days      sums by day are those of the intervals, and of a busy one those of its calls, whatever discounts these have
hours     sums by hour are those by day
receipts  receipts and corrections are the busy time of whoever pays, at the same discounts, and what calls are charged
          beside it
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from pilotlight_core.model.devices import CHARGES, CORE_PRICE, MEMORY_PRICE
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.units import NS_PER_S, WHOLE_DEVICE
from pilotlight_gateway.ledger.ledger_entries import LONGEST_NS, NS_PER_DAY, Part, booked, cut_at_hours
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line, receipt_line, usage_day, usage_hour

SAME_BOOT_S = 1.0
"""By how much the wall clock of one boot of a node may be off between two of its agents."""
BUSY = LeaseState.BUSY.value
SUMMED = (
    "day", "tenant", "app", "function", "version", "state", "price", "ppm", "rate", "core_ppm", "core_rate", "gib_ppm",
    "gib_rate", "discount",
)  # fmt: skip
"""By what the database adds lines up."""
PAYERS = "*"
"""In place of the tenant, where a line does not say which of its calls' tenants pays."""
SumKey = tuple[Any, ...]
"""day, tenant, app, function, version, state, price, ppm, rate, discount"""
Sums = Mapping[SumKey, int]


class Discrepancy(msgspec.Struct, frozen=True, kw_only=True):
    """What does not add up."""

    check: str
    where: str
    expected: int
    found: int


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared of the days from `first` to before `until`, and the first difference."""

    first: str
    until: str
    lines: int
    checks: dict[str, int]
    """Sums that agree, by check."""
    discrepancy: Discrepancy | None


def verify(ledger: Ledger, first: str, until: str) -> Verification:
    """Recompute the sums of the days from `first` to before `until`, whose lines must not be pruned yet. Blocks."""
    with ledger.snapshot() as connection:
        reader = _Reader(connection, first, until)
        checks: tuple[tuple[str, Callable[[], int | Discrepancy]], ...] = (
            ("devices", reader.check_devices),
            ("days", reader.check_days),
            ("hours", reader.check_hours),
            ("receipts", reader.check_receipts),
        )
        done: dict[str, int] = {}
        for name, check in checks:
            if isinstance(found := check(), Discrepancy):
                return reader.verification(done, found)
            done[name] = found
        return reader.verification(done, None)


@dataclass(slots=True)
class _Boot:
    """The lines of a device during one boot of its node, in the order of their beginnings."""

    offset: int
    held: int = 0
    ends: list[tuple[int, int]] = field(default_factory=list)
    """(t1, ppm) of those that go on."""

    def add(self, t0: int, t1: int, ppm: int) -> int:
        """The parts of the device that are in lines at `t0`."""
        while self.ends and self.ends[0][0] <= t0:
            self.held -= heapq.heappop(self.ends)[1]
        if t1 > t0:
            heapq.heappush(self.ends, (t1, ppm))
            self.held += ppm
        return self.held


class _Reader:
    def __init__(self, connection: sa.Connection, first: str, until: str) -> None:
        self._connection = connection
        self._first = first
        self._until = until
        self._lines = 0

    def verification(self, checks: dict[str, int], found: Discrepancy | None) -> Verification:
        return Verification(
            first=self._first, until=self._until, lines=self._lines, checks=checks, discrepancy=found
        )  # fmt: skip

    def check_devices(self) -> int | Discrepancy:
        columns = lease_line.c
        names = (columns.node, columns.device, columns.ppm, columns.t0, columns.t1, columns.wall, columns.wall_ns)
        # As the index has them; a line's id would be read millions of times for the one that may be told.
        query = self._of_days(sa.select(*names)).order_by(columns.node, columns.device, columns.t0)
        boots: list[_Boot] = []
        count, now = 0, ("", "")
        for node, device, ppm, t0, t1, wall, wall_ns in self._stream(query):
            if now != (node, device):  # its lines come together
                count, now, boots = count + 1, (node, device), []
            boot = _boot_of(boots, (wall_ns or int(wall * NS_PER_S)) - t1)
            if (held := boot.add(t0, t1, ppm)) > WHOLE_DEVICE:
                where = f"device {device} of node {node} at {t0} ns, line {self._line_at(node, device, t0, t1)}"
                return Discrepancy(check="devices", where=where, expected=WHOLE_DEVICE, found=held)
        return count

    def _line_at(self, node: str, device: str, t0: int, t1: int) -> str:
        columns = lease_line.c
        mine = (columns.node == node, columns.device == device, columns.t0 == t0, columns.t1 == t1)
        found = self._connection.scalar(self._of_days(sa.select(sa.func.max(columns.id)).where(*mine)))
        return str(found)

    def check_days(self) -> int | Discrepancy:
        sums: dict[SumKey, int] = defaultdict(int)
        is_whole = _in_one_day()
        for row in self._stream(self._of_days(sa.select(lease_line).where(sa.not_(is_whole)))):
            line = row._mapping  # noqa: SLF001 - SQLAlchemy's public name for it
            self._lines += 1
            for day, ns in _days_of(line):
                self._count(sums, day, line, ns)
        # Nearly all lines: the database adds them up.
        by = [lease_line.c[name] for name in SUMMED]
        query = sa.select(*by, sa.func.sum(lease_line.c.ns).label("ns"), sa.func.count().label("lines"))
        for row in self._stream(self._of_days(query.where(is_whole)).group_by(*by)):
            line = row._mapping  # noqa: SLF001
            self._lines += line["lines"]
            self._count(sums, line["day"], line, int(line["ns"]))
        told: dict[SumKey, int] = defaultdict(int)
        for (day, tenant, *rest), ns in self._by_day().items():
            if rest[3] != BUSY:
                told[day, tenant, *rest] += ns
            elif rest[4] not in CHARGES:
                told[day, PAYERS, *rest[:-1], 0] += ns
        return _compare("days", sums, told)

    def _count(self, sums: dict[SumKey, int], day: str, line: Mapping[str, Any], ns: int) -> None:
        if self._first <= day < self._until:
            payer = PAYERS if line["state"] == BUSY else line["tenant"]
            for part in _parts_of(line):
                sums[day, payer, line["app"], line["function"], line["version"], line["state"], *part] += ns

    def check_hours(self) -> int | Discrepancy:
        return _compare("hours", self._by_day(), self._sums(usage_hour, sa.func.substr(usage_hour.c.hour, 1, 10)))

    def check_receipts(self) -> int | Discrepancy:
        columns = receipt_line.c
        key = [
            columns.day, columns.tenant, columns.app, columns.function, columns.version, columns.price, columns.ppm,
            columns.rate, columns.discount,
        ]  # fmt: skip
        query = (
            sa.select(*key, sa.func.sum(columns.ns))
            .select_from(receipt_line)
            .where(columns.day >= self._first, columns.day < self._until)
            .group_by(*key)
        )
        sums = {(*which[:5], BUSY, *which[5:]): int(ns) for *which, ns in self._stream(query)}
        return _compare("receipts", {key: ns for key, ns in self._by_day().items() if key[5] == BUSY}, sums)

    def _by_day(self) -> dict[SumKey, int]:
        return self._sums(usage_day, usage_day.c.day)

    def _sums(self, table: sa.Table, day: sa.ColumnElement[str]) -> dict[SumKey, int]:
        columns = table.c
        key = [
            day, columns.tenant, columns.app, columns.function, columns.version, columns.state, columns.price,
            columns.ppm, columns.rate, columns.discount,
        ]  # fmt: skip
        query = sa.select(*key, sa.func.sum(columns.ns)).where(day >= self._first, day < self._until).group_by(*key)
        return {tuple(which): int(ns) for *which, ns in self._stream(query)}

    def _of_days(self, query: sa.Select[Any]) -> sa.Select[Any]:
        """Of lines with a part in the days, or that are booked there."""
        columns, first, until = lease_line.c, _unix_s(self._first), _unix_s(self._until)
        metered = sa.and_(columns.wall >= first, columns.wall < until + LONGEST_NS / NS_PER_S)
        late = sa.and_(columns.booked_from >= self._first, columns.booked_from < self._until)
        return query.where(sa.or_(metered, late))

    def _stream(self, query: sa.Select[Any]) -> Iterator[Any]:
        with closing(self._connection.execution_options(yield_per=10_000).execute(query)) as rows:
            yield from rows


def _in_one_day() -> sa.ColumnElement[bool]:
    """Of lines that are booked on their own day, and cross no midnight."""
    columns, day = lease_line.c, sa.literal_column(str(NS_PER_DAY), sa.BigInteger)
    return sa.and_(
        sa.func.coalesce(columns.wall_ns, 0) > 0,
        sa.func.coalesce(columns.booked_from, "") == "",
        columns.ns > 0,
        (columns.wall_ns - columns.ns) // day == (columns.wall_ns - 1) // day,
    )


def _boot_of(boots: list[_Boot], offset: int) -> _Boot:
    for boot in boots:
        if abs(boot.offset - offset) < SAME_BOOT_S * NS_PER_S:
            return boot
    boots.append(_Boot(offset))
    return boots[-1]


def _days_of(line: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    hours = cut_at_hours(line["wall_ns"] or int(line["wall"] * NS_PER_S), line["ns"])
    for hour, ns in booked(hours, line["booked_from"] or ""):
        yield hour[:10], ns


def _parts_of(line: Mapping[str, Any]) -> Iterator[Part]:
    off = 0 if line["state"] == BUSY else line["discount"] or 0
    yield line["price"], line["ppm"], line["rate"], off
    for price, ppm, rate in ((CORE_PRICE, "core_ppm", "core_rate"), (MEMORY_PRICE, "gib_ppm", "gib_rate")):
        if line[ppm] and line[rate]:
            yield price, line[ppm], line[rate], off


def _compare(check: str, expected: Sums, found: Sums) -> int | Discrepancy:
    for key in sorted(expected.keys() | found.keys(), key=lambda key: tuple(map(str, key))):
        if (one := expected.get(key, 0)) != (other := found.get(key, 0)):
            return Discrepancy(check=check, where=" ".join(str(part) or "-" for part in key), expected=one, found=other)
    return len(expected)


def _unix_s(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
