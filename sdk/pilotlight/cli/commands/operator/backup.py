"""`pilotlight backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import run_command

app = command_app()


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(help="a new folder, which is closed to others")],
    state_dir: Annotated[str | None, typer.Option(help="folder of everything this machine keeps")] = None,
    ledger_url: Annotated[str | None, typer.Option(help="postgresql://…; default: SQLite below --state-dir")] = None,
    blob_url: Annotated[str | None, typer.Option(help="file:///… or s3://…; default: below --state-dir")] = None,
    keys: Annotated[bool, typer.Option(help="copy the platform's keys too")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Copy a running platform into a folder.

    That is its streams, ledger, blobs and keys. What was accepted before it began is in the copy. Of several hosts,
    PILOTLIGHT_NATS_URL has the bus with the password of its user operator.

    \b
    pilotlight backup /var/backups/pilotlight-2026-11-27
    pilotlight backup copy --ledger-url postgresql://db/ledger --blob-url s3://bucket --no-keys
    """
    named = {"--state-dir": state_dir, "--ledger-url": ledger_url, "--blob-url": blob_url}
    words = [f"{flag}={value}" for flag, value in named.items() if value is not None]
    words += [*(["--no-keys"] if not keys else []), *["--json"] * as_json]
    raise typer.Exit(run_command("backup", [*words, str(folder.absolute())], as_json=as_json))
