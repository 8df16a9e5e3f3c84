"""`pilotlight record`: minute counts of real calls, as `pilotlight simulate` reads them."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json
from pilotlight.cli.session import ask, client
from pilotlight.client.resources.billing import UsageQuestion
from pilotlight.definitions.errors import OptionError

app = command_app()
MINUTE_S = 60.0
LONGEST_MINUTES = 366 * 1_440
DayCount = tuple[str, str]
"""UTC day, and `app.function`."""


@app.command()
def record(
    out: Annotated[Path, typer.Option("--out", help="CSV to write: function,minute,count")],
    minutes: Annotated[int, typer.Option("--minutes", help="how long to record", min=1, max=LONGEST_MINUTES)] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Record calls of functions by minute.

    Counts come from the ledger of usage, where a call stands some seconds after its end. Each minute is written when it
    is over, so Ctrl-C keeps what is there.

    \b
    pilotlight record --minutes 1440 --out monday.csv
    pilotlight simulate --trace monday.csv --fleet A100-80GB:4
    """
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("function", "minute", "count"))
            before, began = _counts(), time.monotonic()
            for minute in range(minutes):
                time.sleep(max(0.0, began + (minute + 1) * MINUTE_S - time.monotonic()))
                now = _counts()
                table.writerows((function, minute, count) for function, count in counted_since(before, now).items())
                file.flush()
                before = {**before, **now}
    except OSError as error:
        raise OptionError(f"{out} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"file": str(out), "minutes": minutes})
    else:
        note(f"{minutes} minutes are in {out}")


def counted_since(before: Mapping[DayCount, int], now: Mapping[DayCount, int]) -> dict[str, int]:
    """The calls by function that the ledger has now and had not before."""
    found: dict[str, int] = {}
    for (day, function), count in sorted(now.items()):
        if (more := count - before.get((day, function), 0)) > 0:
            found[function] = found.get(function, 0) + more
    return found


def _counts() -> dict[DayCount, int]:
    """Today's and yesterday's calls: one that ended before midnight may be counted after it."""
    start = datetime.now(UTC).date() - timedelta(days=1)
    report = ask(client().billing.get_usage(UsageQuestion(start=start.isoformat(), by="day,app,function")))
    return counts_of(report.get("lines", ()))


def counts_of(lines: Iterable[Mapping[str, Any]]) -> dict[DayCount, int]:
    """The calls of a usage report by day and function."""
    return {(line["day"], f"{line['app']}.{line['function']}"): int(line["calls"]) for line in lines}
