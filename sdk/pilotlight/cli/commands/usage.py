"""`pilotlight usage`."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.client.resources.billing import UsageQuestion
from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.api.billing_api import FleetCosts, MonthForecast
from pilotlight_core.model.units import shown_money

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
MORE = ("hour", "tenant", "key", "gpu", "purpose", "purchase", "region")
"""Columns of CSV that are there if it is grouped by them."""
SHOWN = ("day", "function", "state", "price", "calls", "seconds", "cost")
"""Columns of the table; `seconds` are of a whole device, of cores and memory those of a core and of a GiB."""
VERSION_WIDTH = 12
NUMBERS = ("calls", "seconds", "cost")
TAG = "tag:"
"""Before the name of a tag in --by."""
FORMATS = {"parquet": "Parquet", "focus": "FOCUS 1.2 (CSV)", "events": "CloudEvents (JSON)", "html": "a page"}
TENANTS = ("tenant", "calls", "GPU hours", "without calls", "cost")
CAUSES = ("what nobody pays for", "GPU hours", "at list price")
DEVICES = ("node", "device", "gpu", "hours", "sold", "revenue", "list value", "cost")
FLEET_NUMBERS = (
    "calls",
    "GPU hours",
    "without calls",
    "cost",
    "at list price",
    "hours",
    "sold",
    "revenue",
    "list value",
)


def _file(kind: str) -> Any:
    return typer.Option(f"--{kind}", metavar="FILE", help=f"write {FORMATS[kind]} to a file, or to - for stdout")


@app.command()
def usage(
    start: Annotated[str | None, typer.Option("--from", help="first day, 2026-11-01")] = None,
    end: Annotated[str | None, typer.Option("--to", help="the day after the last, 2026-12-01")] = None,
    by: Annotated[str | None, typer.Option("--by", help="sum up by these instead: app,state,tag:team")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="another tenant's, for operators")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="all tenants' and your own, for operators")] = False,
    forecast: Annotated[bool, typer.Option("--forecast", help="what this month will have cost")] = False,
    fleet: Annotated[bool, typer.Option("--fleet", help="who spends, and what devices earn, for operators")] = False,
    paid: Annotated[str, typer.Option("--paid", help="with --fleet, what an hour costs you: h100:1.9,l4:0.35")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV")] = False,
    parquet: Annotated[Path | None, _file("parquet")] = None,
    focus: Annotated[Path | None, _file("focus")] = None,
    events: Annotated[Path | None, _file("events")] = None,
    html: Annotated[Path | None, _file("html")] = None,
) -> None:
    """Show usage and its cost.

    By day, function, version and state; --json and --csv also by part of a device. --by takes day, hour, app, function,
    version, state, price, ppm, key, gpu, purpose, purchase, region, and tags of functions; with --all also tenant.
    Seconds are of a whole device: half a device for 2 s is 1 s. What was promised of the host beside it has lines of
    its own: cpu_core, in seconds of a core, and memory_gib, in seconds of a GiB. The total counts the seconds of
    devices alone; lines below it say which thresholds of budgets were reached in these days. Tables have two to four
    significant digits of money, files all.

    \b
    pilotlight usage
    pilotlight usage --by tag:team,state
    pilotlight usage --from 2026-11-01 --to 2026-12-01 --csv > november.csv
    pilotlight usage --from 2026-11-01 --to 2026-12-01 --html november.html
    pilotlight usage --forecast
    pilotlight usage --all --by tenant,day
    """
    asked = UsageQuestion(start=start, end=end, by=by, tenant=tenant, everybody=everybody)
    files = {"parquet": parquet, "focus": focus, "events": events, "html": html}
    wanted = [(kind, path) for kind, path in files.items() if path is not None]
    if len(wanted) + sum((as_json, as_csv)) > 1 or (forecast and fleet):
        raise OptionError("These exclude each other: --json, --csv and files; --forecast and --fleet.")
    if forecast:
        _show_forecast(ask(client().billing.get_forecast(asked)), as_json=as_json)
    elif fleet:
        _show_fleet(ask(client().billing.get_fleet_costs(asked, paid)), as_json=as_json)
    elif wanted:
        _write(*wanted[0], asked)
    else:
        _show(ask(client().billing.get_usage(asked)), by or "", as_json=as_json, as_csv=as_csv)


def merged(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge lines that a table shows alike: a version's on parts of devices of several sizes."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("day", "tenant", "app", "function", "version", "state", "price", "currency")
    for line in lines:
        key = tuple(line.get(name) for name in names)
        if (one := found.get(key)) is None:
            found[key] = dict(line)
            continue
        one["calls"] = one.get("calls", 0) + line.get("calls", 0)
        one["gpu_seconds"] = float(one.get("gpu_seconds", 0.0)) + float(line.get("gpu_seconds", 0.0))
        one["cost"] = f"{Decimal(str(one.get('cost', 0))) + Decimal(str(line.get('cost', 0))):f}"
    return list(found.values())


def _write(kind: str, path: Path, asked: UsageQuestion) -> None:
    content = ask(client().billing.export_usage(asked, kind))
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}.") from error
    note(f"Wrote {path}.")


def _show(report: dict[str, Any], by: str, *, as_json: bool, as_csv: bool) -> None:
    lines: list[dict[str, Any]] = list(report.get("lines", ()))
    asked = list(dict.fromkeys(part.strip() for part in by.split(",") if part.strip()))
    if as_json:
        print_json(report)
    elif as_csv:
        more = [name for name in MORE if lines and name in lines[0]]
        columns = [*COLUMNS, *more, *(part for part in asked if part.startswith(TAG))]
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
        shown = ("tenant", *SHOWN) if lines and "tenant" in lines[0] else SHOWN
        rows = [_row(line, shown) for line in merged(lines)]
        if rows:
            rows.append(_row({shown[0]: "total", **(report.get("total") or {})}, shown))
        print_table(shown, rows, empty="Nothing was used.", right=NUMBERS, less=("price", "calls", "state"))
    if not as_json and not as_csv:
        _show_thresholds(report.get("thresholds") or [])


def _show_thresholds(reached: list[dict[str, Any]]) -> None:
    for one in reached:
        which = f"{one['budget']} of {one['tenant']}"
        print_text(f"{one['at']}: {one['percent']} % of the budget {which} was reached, {shown_money(one['usd'])} USD")


def _show_forecast(found: MonthForecast, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    text = f"{found.month}: {shown_money(found.so_far)} {found.currency} so far"
    if not found.method:
        print_text(f"{text}; nothing is known to forecast from.")
        return
    text += f", {shown_money(found.expected)} expected at its end"
    if found.low is not None and found.high is not None:
        text += f", {shown_money(found.low)} to {shown_money(found.high)} in eight of ten such forecasts"
    print_text(f"{text} ({found.method}, from {found.days} days).")


def _show_fleet(found: FleetCosts, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    tenants = [
        (one.tenant, str(one.calls), _hours(one.gpu_seconds), shown_money(one.idle_cost), shown_money(one.cost))
        for one in found.tenants
    ]
    print_table(TENANTS, tenants, empty="Nobody used anything.", right=FLEET_NUMBERS)
    print_text()
    causes = [(one.cause, _hours(one.gpu_seconds), shown_money(one.cost)) for one in found.operator]
    print_table(CAUSES, causes, empty="Nothing was without a payer.", right=FLEET_NUMBERS)
    print_text()
    devices = [
        (
            one.node, one.device, one.gpu, f"{one.hours:.4g}", f"{one.sold:.0%}", shown_money(one.revenue),
            shown_money(one.list_value), "-" if one.cost is None else shown_money(one.cost),
        )
        for one in found.devices
    ]  # fmt: skip
    print_table(DEVICES, devices, empty="No device was metered.", right=FLEET_NUMBERS, less=("device", "list value"))


def _hours(seconds: float) -> str:
    return f"{seconds / 3_600:.4g}"


def _row(line: dict[str, Any], columns: Sequence[str]) -> list[str]:
    if "function" in line:
        version = str(line.get("version", "")).rpartition("@")[2][:VERSION_WIDTH]
        line = {**line, "function": f"{line.get('app', '')}.{line['function']}@{version}"}
    return _cells(line, columns)


def _cells(line: dict[str, Any], columns: Sequence[str]) -> list[str]:
    shown = {**line, "seconds": f"{float(line.get('gpu_seconds', 0.0)):.3f}"}
    cost = line.get("cost")
    shown["cost"] = "" if cost is None else f"{shown_money(cost)} {line.get('currency', '')}".strip()
    return [str(shown.get(column, "")) for column in columns]


def _with_tags(line: dict[str, Any]) -> dict[str, Any]:
    return line | {f"{TAG}{name}": value for name, value in (line.get("tags") or {}).items()}
