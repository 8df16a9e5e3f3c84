"""Demand and prices from CSV files; an error names row and column.

Demand has a row for each function, or for each batch size measured of it. `function` and `rps` are required; further
rows of a function repeat them or leave `rps` empty. A measured point is `gpu`, `slice` ("whole" if empty, "whole:4",
"3g" or the driver's "3g.40gb"), `batch`, and `latency_ms` (95th percentile of one batch); `throughput` (items per
second) is batch / latency if empty. `slo_ms` and `least` empty mean no service level and one instance.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pilotlight_placement.asks.curves import WHOLE, Curves, ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import LARGEST_GROUP, FunctionNeed
from pilotlight_placement.hardware.catalogue import Catalogue, Device, is_kind, standard

POINT = ("gpu", "slice", "batch", "latency_ms", "throughput")
DEMAND = ("function", "rps", "slo_ms", "least", *POINT)
CURVES = ("function", *POINT)
PRICES = ("gpu", "price")
MOST_BYTES = 64 * 2**20


class BadTable(ValueError):
    """An unreadable file or row: names file, row as an editor counts it (0: none), and column."""

    def __init__(self, path: Path, row: int, column: str, what: str) -> None:
        where = [str(path), *([f"row {row}"] if row else []), *([column] if column else [])]
        super().__init__(f"{', '.join(where)}: {what}")


@dataclass(frozen=True, kw_only=True)
class CsvRow:
    path: Path
    number: int
    fields: Mapping[str, str]

    def bad(self, column: str, what: str) -> BadTable:
        return BadTable(self.path, self.number, column, what)

    def text(self, column: str) -> str:
        text = self.fields.get(column, "")
        if not text:
            raise self.bad(column, "is empty")
        return text

    def number_of(self, column: str) -> float:
        text = self.text(column)
        try:
            number = float(text.replace("_", " "))
        except ValueError:
            raise self.bad(column, f"{text!r} is not a number") from None
        if not (math.isfinite(number) and number > 0):
            raise self.bad(column, f"{text} is not a number above 0")
        return number

    def count_of(self, column: str, least: int) -> int:
        text = self.text(column)
        if not text.isdecimal() or int(text) < least:
            raise self.bad(column, f"{text!r} is not a whole number of at least {least}")
        return int(text)

    def has(self, column: str) -> bool:
        return bool(self.fields.get(column))


def read_demand(
    path: Path, catalogue: Catalogue | None = None
) -> tuple[tuple[FunctionNeed, ...], dict[str, list[MeasuredPoint]]]:
    """The needs of functions, and their measured points in the same file.

    Raises:
        BadTable: naming row and column.
    """
    needs: dict[str, FunctionNeed] = {}
    measured: dict[str, list[MeasuredPoint]] = {}
    for row in _rows(path, DEMAND, needed=("function", "rps")):
        function = row.text("function")
        if function not in needs or row.has("rps"):
            need = _need(row)
            if needs.setdefault(function, need) != need:
                raise row.bad("rps", f"{function} has other figures in a row above")
        if any(row.has(column) for column in POINT):
            measured.setdefault(function, []).append(_measured(row, catalogue or standard()))
    if not needs:
        raise BadTable(path, 1, "", "no row follows the heading")
    return tuple(needs.values()), measured


def read_curves(path: Path, catalogue: Catalogue | None = None) -> dict[str, list[MeasuredPoint]]:
    """Measured points by function.

    Raises:
        BadTable: naming row and column.
    """
    measured: dict[str, list[MeasuredPoint]] = {}
    for row in _rows(path, CURVES, needed=("function", "gpu", "batch", "latency_ms")):
        measured.setdefault(row.text("function"), []).append(_measured(row, catalogue or standard()))
    return measured


def read_prices(path: Path, catalogue: Catalogue | None = None) -> dict[str, float]:
    """Dollars per device hour, by device.

    Raises:
        BadTable: naming row and column.
    """
    prices: dict[str, float] = {}
    for row in _rows(path, PRICES, needed=PRICES):
        device = _device(row, catalogue or standard())
        if device.name in prices:
            raise row.bad("gpu", f"{device.name} has a price in a row above")
        prices[device.name] = row.number_of("price")
    return prices


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint:
    device: str
    slice: str
    point: ThroughputPoint


def curves_of(*tables: Mapping[str, list[MeasuredPoint]]) -> dict[str, Curves]:
    points: dict[str, dict[tuple[str, str], tuple[ThroughputPoint, ...]]] = {}
    for table in tables:
        for function, measured in table.items():
            mine = points.setdefault(function, {})
            for at in measured:
                mine[at.device, at.slice] = (*mine.get((at.device, at.slice), ()), at.point)
    return {function: Curves(mine) for function, mine in points.items()}


def _need(row: CsvRow) -> FunctionNeed:
    return FunctionNeed(
        function=row.text("function"),
        rps=row.number_of("rps"),
        slo_ms=row.number_of("slo_ms") if row.has("slo_ms") else None,
        least=row.count_of("least", 0) if row.has("least") else 1,
    )


def _measured(row: CsvRow, catalogue: Catalogue) -> MeasuredPoint:
    device = _device(row, catalogue)
    batch, latency = row.count_of("batch", 1), row.number_of("latency_ms")
    throughput = row.number_of("throughput") if row.has("throughput") else batch / latency * 1000
    point = ThroughputPoint(batch=batch, throughput=throughput, p95_ms=latency)
    return MeasuredPoint(device=device.name, slice=_slice(row, device), point=point)


def _device(row: CsvRow, catalogue: Catalogue) -> Device:
    name = row.text("gpu").upper()
    by_name = {known.upper(): device for known, device in catalogue.devices.items()}
    if name in by_name:
        return by_name[name]
    alike = [known for known in catalogue.devices if is_kind(name, known.upper())]
    if alike and name != "ANY":
        raise row.bad("gpu", f"{row.text('gpu')} comes in several kinds: {', '.join(alike)}")
    raise row.bad("gpu", f"{row.text('gpu')} is not known; known are {', '.join(sorted(catalogue.devices))}")


def _slice(row: CsvRow, device: Device) -> str:
    if not row.has("slice"):
        return WHOLE
    text = row.text("slice").lower()
    groups = {WHOLE: WHOLE, f"{WHOLE}:1": WHOLE} | {f"{WHOLE}:{n}": f"{WHOLE}:{n}" for n in range(2, LARGEST_GROUP + 1)}
    names = groups | {cut.profile.key: cut.profile.key for cut in device.cuts}
    names |= {cut.name: cut.profile.key for cut in device.cuts}
    if text not in names:
        offered = [WHOLE, *(cut.profile.key for cut in device.cuts)]
        raise row.bad("slice", f"{row.text('slice')!r} is no slice of {device.name}: {', '.join(offered)}")
    return names[text]


def _rows(path: Path, columns: tuple[str, ...], needed: tuple[str, ...]) -> Iterator[CsvRow]:
    text = _text(path)
    reader = csv.reader(text.splitlines(keepends=True))
    heading = [name.strip().lower() for name in next(reader, [])]
    for name in heading:
        if name not in columns:
            raise BadTable(path, 1, name or "heading", f"no such column; known are {', '.join(columns)}")
        if heading.count(name) > 1:
            raise BadTable(path, 1, name, "stands twice in the heading")
    for name in needed:
        if name not in heading:
            raise BadTable(path, 1, name, f"is missing in the heading; needed are {', '.join(needed)}")
    for cells in reader:
        fields = [cell.strip() for cell in cells]
        if not any(fields) or fields[0].startswith("#"):
            continue
        if len(fields) > len(heading):
            raise BadTable(path, reader.line_num, "", f"{len(fields)} fields under {len(heading)} columns")
        yield CsvRow(path=path, number=reader.line_num, fields=dict(zip(heading, fields, strict=False)))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadTable(path, 0, "", f"the file has more than {MOST_BYTES // 2**20} MiB")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadTable(path, 0, "", error.strerror or "cannot be read") from None
    except UnicodeDecodeError:
        raise BadTable(path, 0, "", "is not UTF-8 text") from None
