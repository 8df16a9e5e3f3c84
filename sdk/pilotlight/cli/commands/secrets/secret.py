"""`pilotlight secret`."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.secrets.secret_values import MOST_VALUE_BYTES, value_fault, without_line_end

STDIN = "-"
app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the secret's name, such as hf-token")]


@app.callback()
def group() -> None:
    """Values that functions need and nobody may read."""


@app.command(name="set")
def set_secret(
    name: Name,
    file: Annotated[str | None, typer.Option(help="read the value from this file; - is stdin")] = None,
    as_json: Json = False,
) -> None:
    """Set a secret's value: asked for at a terminal, else read from stdin. It is never an argument, which others see.

    Of a single line the line's end is left out. Containers that have a former value are replaced in turn.

    \b
    pilotlight secret set hf-token
    pilotlight secret set signing-key --file key.pem
    vault read -field=token … | pilotlight secret set hf-token
    """
    if NAME.fullmatch(name) is None:  # before it is sent: what is asked of gateways is kept in the audit log
        raise Misuse(
            "The secret's name is expected to be 1 to 63 letters, digits, '_' or '-', not starting with '-'. Its value "
            "comes from a terminal, a file or stdin: a value that stood on the command line is known to others.",
            field="name",
        )
    value = _value(name, file)
    if why := value_fault(value):
        raise Misuse(f"The value of {name} is not taken: {why}.", field="value")
    made = ask(client().secrets.set(name, value))
    if as_json:
        print_json(made)
        return
    users = f"; containers of {', '.join(made['functions'])} get it in turn" if made["functions"] else ""
    print_text(f"Set {made['name']}, value {made['number']}{users}.")


@app.command(name="list")
def list_secrets(as_json: Json = False) -> None:
    """List secrets, without their values, and the functions that use them.

    \b
    pilotlight secret list
    """
    secrets = ask(client().secrets.list_secrets())
    if as_json:
        print_json(secrets)
        return
    rows = [
        (one["name"], one["number"], ago(one["changed_at"]), one["changed_by"], ", ".join(one["functions"]) or "-")
        for one in secrets
    ]
    columns = ("name", "value", "set", "by key", "functions")
    print_table(columns, rows, empty="No secrets.", right=("value",), less=("by key",))


@app.command(name="rm")
def remove(name: Name, as_json: Json = False) -> None:
    """Remove a secret that no function in service uses.

    \b
    pilotlight secret rm hf-token
    """
    ask(client().secrets.remove(name))
    if as_json:
        print_json({"name": name, "removed": True})
    else:
        print_text(f"Removed {name}.")


def _value(name: str, file: str | None) -> str:
    """The value, from where the command's user has it. Raises Misuse."""
    if file is None and at_terminal():
        return getpass.getpass(f"Value of {name} (not shown): ")
    most = MOST_VALUE_BYTES + 2
    try:
        if file is None or file == STDIN:
            data = sys.stdin.buffer.read(most)
        else:
            with Path(file).expanduser().open("rb") as source:
                data = source.read(most)
        return without_line_end(data.decode())
    except OSError as error:
        raise Misuse(f"--file {file}: {error.strerror}.", field="file") from None
    except UnicodeDecodeError:
        raise Misuse("The value is no text in UTF-8: encode it, for instance with base64.", field="value") from None


def at_terminal() -> bool:
    """Whether a person is there who can be asked."""
    return sys.stdin.isatty()
