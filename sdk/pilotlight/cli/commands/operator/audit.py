"""`pilotlight audit`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.local_times import show_instant
from pilotlight.cli.output import note, print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table

app = command_app()
COLUMNS = ("when", "by", "change", "of", "told", "result")


@app.command()
def audit(
    since: Annotated[str, typer.Option(help="how long ago: 30m, 12h, 7d")] = "1d",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="at most so many, the last ones")] = 100,
    operation: Annotated[str, typer.Option(help="only this one's, as the HTTP API calls it: setLimits")] = "",
    key: Annotated[str, typer.Option(help="only what was asked for with the key of this id")] = "",
    tenant: Annotated[str, typer.Option(help="another tenant's: for operators")] = "",
    of_all: Annotated[bool, typer.Option("--all", help="of all tenants: for operators")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show who changed what.

    Deploys, keys, tenants, limits, prices, budgets, sharing: all that is no call, and what came of it.

    \b
    pilotlight audit
    pilotlight audit --since 7d --operation revokeKey
    pilotlight audit --all --json
    """
    found = ask(
        client().platform.list_changes(
            since=since, limit=limit, operation=operation, key=key, tenant=tenant, of_all=of_all
        )
    )
    if as_json:
        print_json(found)
        return
    entries = found.get("entries", [])
    print_table(
        COLUMNS, [_row(entry) for entry in entries], empty=f"Nothing was changed in the last {since}.", less=("told",)
    )
    if found.get("more"):
        note(f"These are the last {len(entries)}: there are more, see --limit.")


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    target = {name: value for name, value in entry.get("target", {}).items() if name != "tenant"}
    named = [entry.get("tenant", ""), *target.values()]
    told = ", ".join(f"{name}={_shown(value)}" for name, value in entry.get("told", {}).items())
    return (
        show_instant(float(entry.get("at") or 0.0)),
        " ".join(filter(None, (entry.get("by"), entry.get("subject"), entry.get("key"), _glass(entry)))),
        entry.get("operation", ""),
        " ".join(named),
        told,
        _result(entry),
    )


def _glass(entry: dict[str, Any]) -> str:
    return "BREAK-GLASS" if entry.get("break_glass") else ""


def _result(entry: dict[str, Any]) -> str:
    status = entry.get("status", 0)
    return "unknown" if not status else entry.get("code") or "done"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
