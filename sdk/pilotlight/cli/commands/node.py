"""`pilotlight node`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json
from pilotlight.cli.platform_commands import run_command
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table

TEXT_WIDTH = 120

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """What this machine guarantees; impossible usage."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check(
    context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="print the checks as JSON")] = False
) -> None:
    """Check what this machine can guarantee to containers.

    \b
    sudo pilotlight node check
    """
    flags = ["--json"] * as_json
    raise typer.Exit(run_command("node-check", [*flags, *context.args], as_json=as_json))


@app.command()
def quarantine(
    node: Annotated[str | None, typer.Option(help="only this one's")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", help="how many", min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show impossible usage that nodes sent: it is on no bill.

    For operators. A node that sends such usage is broken, or taken over. The last of each are kept, all are counted.

    \b
    pilotlight node quarantine
    pilotlight node quarantine --node gpu-7 --limit 100 --json
    """
    page = ask(client().platform.get_quarantine(node, limit))
    if as_json:
        print_json(page)
        return
    counts = [(count["node"] or "-", count["reason"], count["events"]) for count in page["counts"]]
    print_table(("node", "reason", "events"), counts, empty="Nothing is in quarantine.", right=("events",))
    if counts:
        note("")
        print_table(("at", "node", "reason", "sent"), [_row(item) for item in page["items"]], empty="Nothing is kept.")


def _row(item: dict[str, Any]) -> tuple[str, str, str, str]:
    at = datetime.fromtimestamp(item["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    return at, item["node"] or "-", item["reason"], item["text"][:TEXT_WIDTH]
