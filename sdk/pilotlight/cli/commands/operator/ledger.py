"""`pilotlight ledger`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import run_command

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """The ledger of usage, in its database."""


@app.command()
def verify(
    start: Annotated[str | None, typer.Option("--from", help="first day, 2026-11-01; default: 31 days back")] = None,
    end: Annotated[str | None, typer.Option("--to", help="the day after the last, 2026-12-01")] = None,
    ledger_url: Annotated[str | None, typer.Option(help="postgresql://…; default: SQLite below --state-dir")] = None,
    state_dir: Annotated[str | None, typer.Option(help="folder of everything this machine keeps")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Recompute its sums from its lines; name the first that differs.

    No time of a device may be in two lines; sums by day and hour are those of the intervals; receipts are the busy time
    of whoever pays. It reads one snapshot, beside the running platform. Exit code 1: something differs.

    \b
    pilotlight ledger verify
    pilotlight ledger verify --from 2026-11-01 --to 2026-12-01 --ledger-url postgresql://db/ledger
    """
    named = {"--from": start, "--to": end, "--ledger-url": ledger_url, "--state-dir": state_dir}
    words = [f"{flag}={value}" for flag, value in named.items() if value is not None] + ["--json"] * as_json
    raise typer.Exit(run_command("ledger-verify", words, as_json=as_json))
