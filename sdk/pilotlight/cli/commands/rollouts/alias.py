"""`pilotlight alias`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import app_names
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.ids import parse_ref

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Alias = Annotated[str, typer.Argument(metavar="APP.FUNCTION@ALIAS", help="what callers write")]


@app.callback()
def group() -> None:
    """Names of versions, such as app.function@prod."""


@app.command(name="set")
@advising(not_found=DEPLOYED)
def set_alias(
    alias: Alias,
    version: Annotated[str, typer.Argument(help="v7, or a version's id")],
    as_json: Json = False,
) -> None:
    """Let an alias stand for a version. A deploy does not move it; calls by it are on no side of a rollout.

    \b
    pilotlight alias set hello.greet@prod v1
    pilotlight call hello.greet@prod name=Ada
    """
    owner, function, name = _named(alias)
    info = ask(client().aliases.set(owner, function, name, version))
    if as_json:
        print_json(info)
    else:
        print_text(f"{info.ref} is {info.version} from now on.")


@app.command(name="list")
@advising(not_found=DEPLOYED)
def list_aliases(
    name: Annotated[str, typer.Argument(help="the app's name", autocompletion=app_names)], as_json: Json = False
) -> None:
    """List the aliases of an app's functions.

    \b
    pilotlight alias list hello
    """
    found = ask(client().aliases.list_aliases(name))
    if as_json:
        print_json(found)
        return
    rows = [(one["ref"], one["version"], "rolled back" if one.get("withdrawn") else "") for one in found]
    print_table(("alias", "version", ""), rows, empty=f"{name} has no aliases: 'pilotlight alias set' makes one.")


@app.command(name="delete")
def delete_alias(alias: Alias, as_json: Json = False) -> None:
    """Delete an alias. Calls that name it are refused from then on.

    \b
    pilotlight alias delete hello.greet@prod
    """
    owner, function, name = _named(alias)
    ask(client().aliases.delete(owner, function, name))
    if as_json:
        print_json({"app": owner, "function": function, "alias": name, "deleted": True})
    else:
        print_text(f"Deleted {alias}.")


def _named(alias: str) -> tuple[str, str, str]:
    """Return the app, function and alias of `app.function@alias`."""
    ref = parse_ref(alias)
    if ref.tenant is not None or not ref.pin:
        raise typer.BadParameter(f"{alias!r}: expected app.function@alias, such as hello.greet@prod.")
    return ref.app, ref.function, ref.pin
