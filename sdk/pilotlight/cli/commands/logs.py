"""`pilotlight logs`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import log_names
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.printable import printable_line
from pilotlight.cli.session import client, each

app = command_app()
TAIL = 100
COLOURS = {"stderr": "\x1b[33m", "platform": "\x1b[2m"}


@app.command()
@advising(not_found=DEPLOYED)
def logs(
    name: Annotated[str, typer.Argument(help="APP or APP.FUNCTION", autocompletion=log_names)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as lines are printed")] = False,
    call: Annotated[str, typer.Option(help="only one call's: its id, or the request id of its error")] = "",
    since: Annotated[str | None, typer.Option(help="30s, 10m, 2h or 1d ago, or unix seconds")] = None,
    tail: Annotated[
        int | None, typer.Option(help=f"the last lines only; {TAIL} unless --since is given", min=0)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print lines as JSON")] = False,
) -> None:
    """Show what functions print.

    \b
    pilotlight logs hello
    pilotlight logs -f hello.greet --since 10m
    pilotlight logs hello --call call_local_4_…
    """
    app_name, _, function = name.partition(".")
    if tail is None and since is None:
        tail = TAIL
    lines = client().platform.read_logs(
        app_name, function=function or None, call_id=call or None, since=since, tail=tail, follow=follow
    )
    seen = False
    for line in each(lines):
        seen = True
        if as_json:
            print_json(line, indent=False)
        else:
            print_text(_shown(line), colour=COLOURS.get(str(line.get("stream")), ""))
    if not seen:
        of = f" of {call}" if call else ""
        note(f"Nothing{of} is in the logs of {name}{' since then' if since else ''}.")


def _shown(line: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(float(line.get("at", 0.0))).astimezone()
    return f"{at:%Y-%m-%d %H:%M:%S}  {line.get('function', '')}  {printable_line(str(line.get('text', '')))}"
