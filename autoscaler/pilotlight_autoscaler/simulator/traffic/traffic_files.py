"""The traffic of a recorded trace, function by function. What is beyond its last minute is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pilotlight_autoscaler.simulator.traffic.function_traffic import (
    MINUTE_S,
    CountedCalls,
    FunctionTraffic,
    RecordedCalls,
    TimedCall,
)
from pilotlight_autoscaler.simulator.traffic.trace_files import FunctionKey, TraceFault, TraceRow, open_trace

MOST_CALLS = 50_000_000
"""Of a record call by call: sixteen bytes each. More calls are recorded by minute."""


@dataclass(kw_only=True)
class RecordedTraffic:
    """What a trace says of each function."""

    minutes: int = 0
    by_function: dict[FunctionKey, FunctionTraffic] = field(default_factory=dict)
    classes: dict[FunctionKey, str] = field(default_factory=dict)


def read_traffic(path: Path, duration_s: Callable[[FunctionKey], float], seed: int = 0) -> RecordedTraffic:
    """The traffic in a file; `duration_s` says how long calls take that are only counted.

    Raises:
        TraceFault: naming the line, and what was expected.
    """
    found = RecordedTraffic()
    calls: dict[FunctionKey, list[TimedCall]] = {}
    counts: dict[FunctionKey, dict[int, int]] = {}
    with open_trace(path) as table:
        for number, row in enumerate(table.rows):
            _note_class(found, row)
            if table.by_call:
                if number >= MOST_CALLS:
                    raise TraceFault(f"line {row.line}: more than {MOST_CALLS:,} calls: count them by minute")
                calls.setdefault(row.key, []).append((row.when, row.amount))
                found.minutes = max(found.minutes, int(row.when // MINUTE_S) + 1)
            else:
                of = counts.setdefault(row.key, {})
                of[int(row.when)] = of.get(int(row.when), 0) + int(row.amount)
                found.minutes = max(found.minutes, int(row.when) + 1)
    found.by_function |= {key: RecordedCalls(each) for key, each in calls.items()}
    found.by_function |= {
        key: CountedCalls(each, duration_s(key), f"{seed}/{'/'.join(key)}") for key, each in counts.items()
    }
    if not any(each.next_minute(0) is not None for each in found.by_function.values()):
        raise TraceFault("there is no call in it")
    return found


def _note_class(found: RecordedTraffic, row: TraceRow) -> None:
    known = found.classes.setdefault(row.key, row.priority)
    if known != row.priority:
        raise TraceFault(f"line {row.line}: class: {row.key[1]} is of class {known!r} above, not {row.priority!r}")
