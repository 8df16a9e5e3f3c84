"""`pilotlight placement`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.commands import command_app
from pilotlight.cli.output import print_json
from pilotlight.cli.session import ask, client
from pilotlight.errors import Misuse

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.callback()
def group() -> None:
    """Where containers are, and why."""


@app.command()
def explain(
    subject: Annotated[str, typer.Argument(help="a container's id, app.function or tenant:app.function")] = "",
    why_not: Annotated[str, typer.Option("--why-not", help="a node: why it was not chosen", metavar="NODE")] = "",
    as_json: Json = False,
) -> None:
    """Tell why a container is where it is, what was decided last of a function, or why a node was not chosen.

    \b
    pilotlight placement explain ctr_embed_1_4
    pilotlight placement explain search.embed
    pilotlight placement explain ctr_embed_1_4 --why-not node-7
    pilotlight placement explain --why-not node-7        (of the last decision)
    """
    if not subject and not why_not:
        raise Misuse("Name a container, a function, or a node with --why-not.", field="subject")
    told = ask(client().platform.explain(subject, why_not))
    if as_json:
        print_json(told)
        return
    for line in told["lines"]:
        print(line)


@app.command()
def plan(function: Annotated[str, typer.Argument(help="app.function, app.function@v7")], as_json: Json = False) -> None:
    """Show how much GPU memory a deployed function needs, line by line, and whether the fleet could hold it.

    \b
    pilotlight placement plan chat.generate
    """
    told = ask(client().platform.placement(function))
    if as_json:
        print_json(told)
    else:
        print(told["version"])
        for line in told["lines"]:
            print(line)
    if not told["fits"]:
        raise typer.Exit(1)
