"""What functions of a simulation need and take, from a CSV file or from options for all of them.

`function` is required, everything else may be empty or missing: then the options decide. A function of several tenants
has the `tenant` in its row; one without is for that name of any tenant.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from pilotlight_autoscaler.simulator.runs.simulated_function import DEFAULT_TENANT, SimulatedFunction, spec_of
from pilotlight_autoscaler.simulator.traffic.trace_files import FunctionKey
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import parse_gpu

MOST_ROWS = 1_000_000
GIB = 2**30


class NumberColumn(NamedTuple):
    default: float
    least: float
    most: float
    what: str


NUMBERS: Mapping[str, NumberColumn] = {
    "load_s": NumberColumn(30.0, 0.0, 86_400.0, "seconds from the command to start a container until it is ready"),
    "duration_s": NumberColumn(1.0, 0.001, 86_400.0, "seconds that a call takes, where the trace only counts calls"),
    "window_s": NumberColumn(60.0, 0.0, 86_400.0, "scaledown_window"),
    "zero_window_s": NumberColumn(0.0, 0.0, 86_400.0, "zero_window, of the last container; 0: as window_s"),
    "timeout_s": NumberColumn(300.0, 0.001, 86_400.0, "how long a call waits at most"),
    "slots": NumberColumn(1, 1, 10_000, "calls that a container holds at once"),
    "min_containers": NumberColumn(0, 0, 1_000, "containers that stay"),
    "max_containers": NumberColumn(10, 1, 10_000, "containers at most"),
    "buffer_containers": NumberColumn(0, 0, 1_000, "containers beyond the demand"),
    "forecast": NumberColumn(1, 0, 1, "whether its past foretells containers: 1 or 0"),
    "unpark_s": NumberColumn(0.005, 0.0, 3_600.0, "seconds until a parked container serves again"),
    "memory_gib": NumberColumn(1.0, 0.001, 65_536.0, "GiB of the host that a parked container has"),
    "parks": NumberColumn(1, 0, 1, "whether its containers can be parked, on GPUs by hooks: 1 or 0"),
    "vram_gib": NumberColumn(0.0, 0.0, 4_096.0, "GPU memory; 0: a whole GPU"),
}
NODE_NUMBERS: Mapping[str, NumberColumn] = {
    "warm_gib": NumberColumn(0.0, 0.0, 65_536.0, "GiB of each node's memory for parked containers; 0: none is parked"),
}
"""Of nodes, and no columns of functions."""
WHOLE = frozenset({"forecast", "parks", "slots", "min_containers", "max_containers", "buffer_containers"})
DEFAULT_GPU = "ANY"
COLUMNS = ("function", "tenant", "gpu", *NUMBERS)


class BadFunctionTable(ValueError):
    """A row that cannot be read; says which, and what was expected."""


@dataclass(frozen=True, kw_only=True)
class FunctionTable:
    """Settings by function; `given` are those of all that say nothing else."""

    given: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[FunctionKey, Mapping[str, str]] = field(default_factory=dict)

    def duration_s(self, key: FunctionKey) -> float:
        """How long calls of a function take."""
        return number_of("duration_s", self._settings(key).get("duration_s", ""))

    def function(self, key: FunctionKey, priority: str = "") -> SimulatedFunction:
        """The function of a trace.

        Raises:
            BadFunctionTable: its settings contradict each other.
        """
        settings = self._settings(key)
        numbers = {name: number_of(name, settings.get(name, "")) for name in NUMBERS}
        gpu = settings.get("gpu") or DEFAULT_GPU
        try:
            spec = spec_of(
                key[1],
                gpu=() if gpu.upper() == "CPU" else tuple(parse_gpu(each) for each in gpu.split("|")),
                vram=round(numbers["vram_gib"] * GIB) or None,
                timeout=numbers["timeout_s"],
                scaledown_window=numbers["window_s"],
                zero_window=numbers["zero_window_s"] or UNSET,
                max_inputs=int(numbers["slots"]),
                min_containers=int(numbers["min_containers"]),
                max_containers=int(numbers["max_containers"]),
                buffer_containers=int(numbers["buffer_containers"]),
                forecast=bool(numbers["forecast"]),
            )
        except BadInput as error:
            raise BadFunctionTable(f"{key[1]}: {error}") from None
        if spec.min_containers > spec.max_containers:
            raise BadFunctionTable(f"{key[1]}: min_containers is more than max_containers")
        if 0.0 < numbers["zero_window_s"] < numbers["window_s"]:
            raise BadFunctionTable(f"{key[1]}: zero_window_s is less than window_s")
        return SimulatedFunction(
            tenant=key[0] or DEFAULT_TENANT,
            spec=spec,
            load_s=numbers["load_s"],
            duration_s=numbers["duration_s"],
            unpark_s=numbers["unpark_s"],
            memory=round(numbers["memory_gib"] * GIB),
            parks=bool(numbers["parks"]),
            priority=priority,
        )

    def _settings(self, key: FunctionKey) -> dict[str, str]:
        own = self.rows.get(key) or self.rows.get(("", key[1])) or {}
        return {**self.given, **{name: text for name, text in own.items() if text}}


def read_functions(path: Path, given: Mapping[str, str]) -> FunctionTable:
    """The settings in a file, over `given`.

    Raises:
        BadFunctionTable: naming the line.
    """
    rows: dict[FunctionKey, dict[str, str]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            if unknown := [name for name in reader.fieldnames or [""] if name not in COLUMNS]:
                raise BadFunctionTable(f"line 1: {unknown[0][:40]!r} is no column: expected of {', '.join(COLUMNS)}")
            if "function" not in (reader.fieldnames or ()):
                raise BadFunctionTable("line 1: there is no column function")
            for line, row in enumerate(reader, start=2):
                key, settings = _row(row, line)
                if key in rows or len(rows) >= MOST_ROWS:
                    raise BadFunctionTable(f"line {line}: {key[1]} has a row above, or there are too many")
                rows[key] = settings
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadFunctionTable(str(error)) from None
    return FunctionTable(given=given, rows=rows)


def _row(row: dict[str, str | None], line: int) -> tuple[FunctionKey, dict[str, str]]:
    if None in row or None in row.values():
        raise BadFunctionTable(f"line {line}: expected as many cells as line 1 has")
    settings = {name: (text or "").strip() for name, text in row.items()}
    name, tenant = settings.pop("function"), settings.pop("tenant", "")
    if not name:
        raise BadFunctionTable(f"line {line}: function: expected a name")
    try:
        for column in NUMBERS.keys() & settings.keys():
            number_of(column, settings[column])
        for each in settings.get("gpu", "").split("|"):
            if each and each.upper() != "CPU":
                parse_gpu(each)
    except (ValueError, BadInput) as error:
        raise BadFunctionTable(f"line {line}: {error}") from None
    return (tenant, name), settings


def bytes_of_nodes(settings: Mapping[str, str]) -> int:
    """Of each node's memory, for parked containers."""
    return round(number_of("warm_gib", settings.get("warm_gib", "")) * GIB)


def number_of(column: str, text: str) -> float:
    """The value of a cell or option; empty: the default.

    Raises:
        ValueError: naming the column, and what was expected.
    """
    known = NUMBERS.get(column) or NODE_NUMBERS[column]
    try:
        value = float(text) if text else known.default
    except ValueError:
        value = math.nan
    if not known.least <= value <= known.most or (column in WHOLE and value != int(value)):
        kind = "a whole number" if column in WHOLE else "a number"
        raise ValueError(f"{column}: expected {kind} from {known.least:g} to {known.most:g}, not {text[:40]!r}")
    return value
