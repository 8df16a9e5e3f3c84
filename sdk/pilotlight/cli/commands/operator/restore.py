"""`pilotlight restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import run_command

app = command_app()


@app.command()
def restore(
    folder: Annotated[Path, typer.Argument(help="a folder that `pilotlight backup` has made")],
    state_dir: Annotated[str | None, typer.Option(help="the new, empty state folder")] = None,
    ledger_url: Annotated[str | None, typer.Option(help="postgresql://… of an empty database; default: SQLite")] = None,
    blob_url: Annotated[str | None, typer.Option(help="file:///… or s3://…; default: below --state-dir")] = None,
    keys: Annotated[bool, typer.Option(help="bring the platform's keys back too")] = True,
    keep_ledger: Annotated[bool, typer.Option("--keep-ledger", help="the ledger was not lost: leave it")] = False,
    replicas: Annotated[int | None, typer.Option(help="servers that keep each stream; default: as before")] = None,
    check: Annotated[bool, typer.Option("--check", help="only read the backup, and change nothing")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Bring a copied platform back where there is none.

    Every piece is read and checked before anything is written. Start the platform afterwards.

    \b
    pilotlight restore /var/backups/pilotlight-2026-11-27 --check
    pilotlight restore /var/backups/pilotlight-2026-11-27 --state-dir /var/lib/pilotlight
    """
    named = {"--state-dir": state_dir, "--ledger-url": ledger_url, "--blob-url": blob_url, "--replicas": replicas}
    words = [f"{flag}={value}" for flag, value in named.items() if value is not None]
    flags = {"--no-keys": not keys, "--keep-ledger": keep_ledger, "--check": check, "--json": as_json}
    words += [flag for flag, given in flags.items() if given]
    raise typer.Exit(run_command("restore", [*words, str(folder.absolute())], as_json=as_json))
