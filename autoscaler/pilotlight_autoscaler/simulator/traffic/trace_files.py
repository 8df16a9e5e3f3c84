"""Recorded calls in a CSV file: by minute (`function,minute,count`) or call by call (`function,at_s,duration_s`).

The first line names the columns. Call by call, there may be `tenant` and `class` too; functions of two tenants are two.
Minutes and seconds count from the beginning of the record; what lies beyond the last call is not known.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pilotlight_autoscaler.simulator.minutes.minute_model import MinuteSeries, levels_of, series_of

BY_MINUTE = ("function", "minute", "count")
BY_CALL = ("function", "at_s", "duration_s")
MORE = ("tenant", "class")
MOST_MINUTES = 366 * 1_440
MOST_FUNCTIONS = 1_000_000
MINUTE_S = 60.0
FunctionKey = tuple[str, str]
"""Tenant ("" if there is none) and function."""


class TraceFault(ValueError):
    """The file is no such record; says in which line what was expected."""


class TraceRow(NamedTuple):
    """A line of a record: a call (`at_s` and `duration_s`), or a minute with calls (`minute` and `count`)."""

    line: int
    key: FunctionKey
    priority: str
    """Its `class`; "" without that column."""
    when: float
    amount: float


class TraceTable(NamedTuple):
    by_call: bool
    rows: Iterator[TraceRow]


@dataclass(kw_only=True)
class Trace:
    """The calls of each function: counts by minute, or the containers that they need at once in each."""

    minutes: int = 0
    counts: dict[FunctionKey, dict[int, float]] = field(default_factory=dict)
    """minute -> calls, of a record by minute; else the most calls at once, of which each needs a container."""
    calls: int = 0
    by_call: bool = False

    def needed(self) -> list[list[float]]:
        """Containers that each function needs in each minute; by minute one serves all calls."""
        most = math.inf if self.by_call else 1.0
        return [[min(most, count) for count in self._all_minutes(each)] for each in self.counts.values()]

    def series(self) -> list[MinuteSeries]:
        """The series of each function, or of each level of its concurrency."""
        if self.by_call:
            return [found for each in self.counts.values() for found in levels_of(self._all_minutes(each))]
        found = (series_of(self._all_minutes(each)) for each in self.counts.values())
        return [series for series in found if series is not None]

    def _all_minutes(self, counts: dict[int, float]) -> list[float]:
        minutes = [0.0] * self.minutes
        for minute, count in counts.items():
            minutes[minute] = count
        return minutes


def read_trace(path: Path) -> Trace:
    """The record in a file.

    Raises:
        TraceFault: it is none.
    """
    with open_trace(path) as table:
        trace = _by_call(table.rows) if table.by_call else _by_minute(table.rows)
    if not trace.counts:
        raise TraceFault("there is no call in it")
    return trace


@contextmanager
def open_trace(path: Path) -> Iterator[TraceTable]:
    """The lines of a record, read one by one within the block.

    Raises:
        TraceFault: it is none; also while the lines are read.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            columns = [name.strip() for name in next(lines, [])]
            by_call = "at_s" in columns
            yield TraceTable(by_call, _bounded(_calls(lines, columns) if by_call else _counts(lines, columns)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceFault(str(error)) from None


def _by_minute(rows: Iterator[TraceRow]) -> Trace:
    trace = Trace()
    for row in rows:
        if row.amount:
            counts = trace.counts.setdefault(row.key, {})
            counts[int(row.when)] = counts.get(int(row.when), 0.0) + row.amount
            trace.calls += int(row.amount)
        trace.minutes = max(trace.minutes, int(row.when) + 1)
    return trace


def _by_call(rows: Iterator[TraceRow]) -> Trace:
    trace, calls = Trace(by_call=True), defaultdict[FunctionKey, list[tuple[float, float]]](list)
    for row in rows:
        calls[row.key].append((row.when, row.when + row.amount))
        trace.calls += 1
    for key, found in calls.items():
        trace.counts[key] = most_at_once(found)
        trace.minutes = max(trace.minutes, max(trace.counts[key]) + 1)
    return trace


def _counts(lines: Iterator[list[str]], columns: list[str]) -> Iterator[TraceRow]:
    _check_columns(columns, BY_MINUTE)
    for line, row in _cells(lines, columns):
        minute = _number(row["minute"], "minute", line, MOST_MINUTES - 1)
        count = _number(row["count"], "count", line, 10**12)
        if minute != int(minute) or count != int(count):
            raise TraceFault(f"line {line}: minute and count: expected whole numbers")
        yield TraceRow(line, _key_of(row, line), row.get("class", ""), minute, count)


def _calls(lines: Iterator[list[str]], columns: list[str]) -> Iterator[TraceRow]:
    _check_columns(columns, BY_CALL)
    for line, row in _cells(lines, columns):
        at = _number(row["at_s"], "at_s", line, MOST_MINUTES * MINUTE_S)
        duration = _number(row["duration_s"], "duration_s", line, MOST_MINUTES * MINUTE_S)
        yield TraceRow(line, _key_of(row, line), row.get("class", ""), at, duration)


def _bounded(rows: Iterator[TraceRow]) -> Iterator[TraceRow]:
    known: set[FunctionKey] = set()
    for row in rows:
        known.add(row.key)
        if len(known) > MOST_FUNCTIONS:
            raise TraceFault(f"line {row.line}: more than {MOST_FUNCTIONS:,} functions")
        yield row


def most_at_once(calls: list[tuple[float, float]]) -> dict[int, float]:
    """minute -> the most calls at once in it, of calls from a second to another; a call that takes no time counts."""
    changes = sorted(
        [(start, 1) for start, _ in calls] + [(max(end, math.nextafter(start, math.inf)), -1) for start, end in calls]
    )
    most: dict[int, float] = {}
    running, minute = 0, 0
    for at, change in changes:
        while running and minute < int(at // MINUTE_S):
            minute += 1
            if minute * MINUTE_S < at:
                most[minute] = max(most.get(minute, 0.0), float(running))
        minute = int(at // MINUTE_S)
        running += change
        if change > 0:
            most[minute] = max(most.get(minute, 0.0), float(running))
    return most


def _check_columns(columns: list[str], wanted: tuple[str, ...]) -> None:
    if missing := [name for name in wanted if name not in columns]:
        expected = f"{','.join(BY_MINUTE)} or {','.join(BY_CALL)}[,{','.join(MORE)}]"
        raise TraceFault(f"line 1: there is no column {missing[0]}: expected {expected}")
    if unknown := [name for name in columns if name not in (*wanted, *MORE)]:
        raise TraceFault(f"line 1: {unknown[0][:40]!r} is no column of a trace: expected {','.join((*wanted, *MORE))}")


def _cells(rows: Iterator[list[str]], columns: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(columns):
            raise TraceFault(f"line {line}: {len(row)} cells: expected {len(columns)}")
        yield line, dict(zip(columns, row, strict=True))


def _key_of(row: dict[str, str], line: int) -> FunctionKey:
    if not row["function"]:
        raise TraceFault(f"line {line}: function: expected a name")
    return row.get("tenant", ""), row["function"]


def _number(text: str, column: str, line: int, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise TraceFault(f"line {line}: {column}: expected a number from 0 to {most:g}, not {text[:40]!r}")
    return value
