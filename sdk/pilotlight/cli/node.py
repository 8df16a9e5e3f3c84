"""`pilotlight node`."""

from __future__ import annotations

import subprocess
import sys

import typer

from pilotlight.cli.commands import command_app
from pilotlight.cli.server import need_server

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """This machine as a node."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check(context: typer.Context) -> None:
    """Say what this machine can guarantee to its containers.

    \b
    sudo pilotlight node check
    """
    need_server("pilotlight_runtime.node.node_check")
    done = subprocess.run([sys.executable, "-m", "pilotlight_runtime.node.node_check", *context.args], check=False)
    raise typer.Exit(done.returncode)
