"""`pilotlight version`."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.definitions.version import VERSION

app = command_app()


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"pilotlight": VERSION, "python": platform.python_version()})
    else:
        print_text(f"pilotlight {VERSION} (Python {platform.python_version()})")
