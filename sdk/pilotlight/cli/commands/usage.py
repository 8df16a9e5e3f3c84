"""`pilotlight usage`."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table

app = command_app()
COLUMNS = (
    "day",
    "app",
    "function",
    "version",
    "state",
    "price",
    "ppm",
    "calls",
    "ns",
    "gpu_seconds",
    "cost",
    "currency",
)
SHOWN = ("day", "function", "state", "price", "calls", "seconds", "cost")
"""Columns of the table; `seconds` are of a whole device, of cores and memory those of a core and of a GiB."""
VERSION_WIDTH = 12
NUMBERS = ("calls", "seconds", "cost")
TAG = "tag:"
"""Before the name of a tag in --by."""


@app.command()
def usage(
    start: Annotated[str | None, typer.Option("--from", help="first day, 2026-11-01")] = None,
    end: Annotated[str | None, typer.Option("--to", help="the day after the last, 2026-12-01")] = None,
    by: Annotated[str | None, typer.Option("--by", help="sum up by these instead: app,state,tag:team")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV")] = False,
) -> None:
    """Show usage and its cost.

    By day, function, version and state; --json and --csv also by part of a device. --by takes day, app, function,
    version, state, price, ppm, and tags of functions. Seconds are of a whole device: half a device for 2 s is 1 s. What
    was promised of the host beside it has lines of its own: cpu_core, in seconds of a core, and memory_gib, in seconds
    of a GiB. The total counts the seconds of devices alone.

    \b
    pilotlight usage
    pilotlight usage --by tag:team,state
    pilotlight usage --from 2026-11-01 --to 2026-12-01 --csv > november.csv
    """
    report = ask(client().platform.get_usage(start, end, by))
    lines: list[dict[str, Any]] = list(report.get("lines", ()))
    asked = list(dict.fromkeys(part.strip() for part in (by or "").split(",") if part.strip()))
    if as_json:
        print_json(report)
    elif as_csv:
        columns = [*COLUMNS, *(part for part in asked if part.startswith(TAG))]
        writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_with_tags, lines))
    elif asked:
        columns = [*asked, *NUMBERS]
        rows = [_cells(_with_tags(line), columns) for line in lines]
        if rows:
            rows.append(_cells({asked[0]: "total", **(report.get("total") or {})}, columns))
        print_table(columns, rows, empty="Nothing was used.", right=NUMBERS)
    else:
        rows = [_row(line) for line in merged(lines)]
        if rows:
            rows.append(_row({"day": "total", **(report.get("total") or {})}))
        print_table(SHOWN, rows, empty="Nothing was used.", right=NUMBERS, less=("price", "calls", "state"))


def merged(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge lines that a table shows alike: a version's on parts of devices of several sizes."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        key = tuple(line.get(name) for name in ("day", "app", "function", "version", "state", "price", "currency"))
        if (one := found.get(key)) is None:
            found[key] = dict(line)
            continue
        one["calls"] = one.get("calls", 0) + line.get("calls", 0)
        one["gpu_seconds"] = float(one.get("gpu_seconds", 0.0)) + float(line.get("gpu_seconds", 0.0))
        one["cost"] = f"{Decimal(str(one.get('cost', 0))) + Decimal(str(line.get('cost', 0))):f}"
    return list(found.values())


def _row(line: dict[str, Any]) -> list[str]:
    if "function" in line:
        version = str(line.get("version", "")).rpartition("@")[2][:VERSION_WIDTH]
        line = {**line, "function": f"{line.get('app', '')}.{line['function']}@{version}"}
    return _cells(line, SHOWN)


def _cells(line: dict[str, Any], columns: Sequence[str]) -> list[str]:
    shown = {**line, "seconds": f"{float(line.get('gpu_seconds', 0.0)):.3f}"}
    shown["cost"] = f"{line.get('cost', '')} {line.get('currency', '')}".strip()
    return [str(shown.get(column, "")) for column in columns]


def _with_tags(line: dict[str, Any]) -> dict[str, Any]:
    return line | {f"{TAG}{name}": value for name, value in (line.get("tags") or {}).items()}
