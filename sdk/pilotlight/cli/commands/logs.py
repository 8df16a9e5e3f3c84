"""`pilotlight logs`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, on_terminal, print_json
from pilotlight.cli.session import client, each

app = command_app()
TAIL = 100
COLOURS = {"stderr": "\x1b[33m", "platform": "\x1b[2m"}
PLAIN = "\x1b[0m"


@app.command()
@advising(not_found=DEPLOYED)
def logs(
    name: Annotated[str, typer.Argument(help="APP or APP.FUNCTION")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as lines are printed")] = False,
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
    """
    app_name, _, function = name.partition(".")
    if tail is None and since is None:
        tail = TAIL
    lines = client().platform.read_logs(app_name, function=function or None, since=since, tail=tail, follow=follow)
    seen = False
    for line in each(lines):
        seen = True
        if as_json:
            print_json(line, indent=False)
        else:
            print(_shown(line), flush=True)
    if not seen:
        note(f"Nothing is in the logs of {name}{' since then' if since else ''}.")


def _shown(line: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(float(line.get("at", 0.0))).astimezone()
    text = f"{at:%Y-%m-%d %H:%M:%S}  {line.get('function', '')}  {line.get('text', '')}"
    colour = COLOURS.get(str(line.get("stream")))
    return f"{colour}{text}{PLAIN}" if colour and on_terminal() else text
