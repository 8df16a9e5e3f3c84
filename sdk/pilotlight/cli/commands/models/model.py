"""`pilotlight model`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Names under which clients of OpenAI's API find functions."""


@app.command(name="list")
def list_models(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """List models, and the function of each.

    A function is served under the names of serves=, and an engine's adapters under names behind those.

    \b
    pilotlight model list
    """
    found = ask(client().models.list_models())
    if as_json:
        print_json(found)
        return
    rows = [(one.id, one.function, one.parent or "-", ago(float(one.created))) for one in found]
    empty = 'No models: give a function a name by serves="acme/tiny", and deploy it.'
    print_table(("model", "function", "adapter on", "since"), rows, empty=empty, less=("adapter on",))
