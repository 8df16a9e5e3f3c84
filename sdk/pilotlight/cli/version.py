"""`pilotlight version`."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from pilotlight import __version__
from pilotlight.cli.commands import command_app
from pilotlight.cli.output import print_json

app = command_app()


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"pilotlight": __version__, "python": platform.python_version()})
    else:
        print(f"pilotlight {__version__} (Python {platform.python_version()})")
