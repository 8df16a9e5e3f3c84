"""Recorded calls in a CSV file: by minute (`function,minute,count`) or call by call (`function,at_s,duration_s`).

The first line names the columns. Call by call, there may be `tenant` and `class` too; functions of two tenants are two.
Minutes and seconds count from the beginning of the record; what lies beyond the last call is not known.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_autoscaler.simulator.minute_model import MinuteSeries, levels_of, series_of

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
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            columns = [name.strip() for name in next(rows, [])]
            trace = _by_call(rows, columns) if "at_s" in columns else _by_minute(rows, columns)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceFault(str(error)) from None
    if not trace.counts:
        raise TraceFault("there is no call in it")
    return trace


def _by_minute(rows: Iterator[list[str]], columns: list[str]) -> Trace:
    _check_columns(columns, BY_MINUTE)
    trace = Trace()
    for line, row in _cells(rows, columns):
        minute = _number(row["minute"], "minute", line, MOST_MINUTES - 1)
        count = _number(row["count"], "count", line, 10**12)
        if minute != int(minute) or count != int(count):
            raise TraceFault(f"line {line}: minute and count: expected whole numbers")
        if count:
            counts = _counts_of(trace, row, line)
            counts[int(minute)] = counts.get(int(minute), 0.0) + count
            trace.calls += int(count)
        trace.minutes = max(trace.minutes, int(minute) + 1)
    return trace


def _by_call(rows: Iterator[list[str]], columns: list[str]) -> Trace:
    _check_columns(columns, BY_CALL)
    trace, calls = Trace(by_call=True), defaultdict[FunctionKey, list[tuple[float, float]]](list)
    for line, row in _cells(rows, columns):
        at = _number(row["at_s"], "at_s", line, MOST_MINUTES * MINUTE_S)
        duration = _number(row["duration_s"], "duration_s", line, MOST_MINUTES * MINUTE_S)
        _counts_of(trace, row, line)
        calls[row.get("tenant", ""), row["function"]].append((at, at + duration))
        trace.calls += 1
    for key, found in calls.items():
        trace.counts[key] = most_at_once(found)
        trace.minutes = max(trace.minutes, max(trace.counts[key]) + 1)
    return trace


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


def _counts_of(trace: Trace, row: dict[str, str], line: int) -> dict[int, float]:
    if not row["function"]:
        raise TraceFault(f"line {line}: function: expected a name")
    key = (row.get("tenant", ""), row["function"])
    if key not in trace.counts and len(trace.counts) >= MOST_FUNCTIONS:
        raise TraceFault(f"line {line}: more than {MOST_FUNCTIONS:,} functions")
    return trace.counts.setdefault(key, {})


def _number(text: str, column: str, line: int, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise TraceFault(f"line {line}: {column}: expected a number from 0 to {most:g}, not {text[:40]!r}")
    return value
