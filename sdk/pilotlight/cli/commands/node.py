"""`pilotlight node`."""

from __future__ import annotations

import subprocess

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import command_line

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """This machine as a node."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check(context: typer.Context) -> None:
    """Check what this machine can guarantee to containers.

    \b
    sudo pilotlight node check
    """
    done = subprocess.run([*command_line("node-check"), *context.args], check=False)
    raise typer.Exit(done.returncode)
