"""`pilotlight token`."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from pilotlight.cli.commands import command_app
from pilotlight.cli.output import ago, note, print_json, print_table, span
from pilotlight.cli.session import ask, client
from pilotlight_core.model.api import KeyRequest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
SPAN = re.compile(r"(\d{1,6})([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@app.callback()
def group() -> None:
    """API keys."""


@app.command()
def create(
    scopes: Annotated[str, typer.Option(help="what it may do, with commas between")] = "invoke",
    expires: Annotated[str | None, typer.Option(help="when it ends: 12h, 30d; default: never")] = None,
    label: Annotated[str, typer.Option(help="what it is for")] = "",
    as_json: Json = False,
) -> None:
    """Make an API key. It is shown once, on stdout.

    \b
    export PILOTLIGHT_API_KEY=$(pilotlight token create --scopes invoke --expires 30d)
    """
    request = KeyRequest(
        scopes=tuple(part.strip() for part in scopes.split(",") if part.strip()),
        expires_in_s=None if expires is None else _seconds(expires),
        label=label,
    )
    made = ask(client().platform.create_key(request))
    if as_json:
        print_json(made)
        return
    print(made["key"])
    note(f"{made['id']} may {', '.join(made.get('scopes', ()))}; it is not shown again.")


@app.command(name="list")
def list_keys(as_json: Json = False) -> None:
    """List API keys, without their secrets.

    \b
    pilotlight token list
    """
    keys = ask(client().platform.keys())
    if as_json:
        print_json(keys)
        return
    print_table(("id", "label", "scopes", "created", "expires"), [_row(key) for key in keys], empty="No keys.")


@app.command()
def revoke(id: Annotated[str, typer.Argument(help="the key's id, as listed")]) -> None:  # noqa: A002
    """End an API key at once.

    \b
    pilotlight token revoke 8c1f0e
    """
    ask(client().platform.revoke_key(id))
    print(f"Revoked {id}.")


@app.command()
def show() -> None:
    """Print the key that this machine is configured with, for scripts.

    \b
    curl -H "Authorization: Bearer $(pilotlight token show)" …
    """
    print(client().config.api_key)


def _row(key: dict[str, Any]) -> tuple[Any, ...]:
    expires = key.get("expires_at")
    revoked = key.get("revoked_at") or key.get("revoked")
    return (
        key.get("id", ""),
        key.get("label", ""),
        ", ".join(key.get("scopes", ())),
        ago(float(key.get("created_at") or 0.0)),
        "revoked" if revoked else _until(float(expires)) if expires else "never",
    )


def _until(unix: float) -> str:
    import time

    left = unix - time.time()
    return f"in {span(left)}" if left > 0 else "expired"


def _seconds(text: str) -> float:
    found = SPAN.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"--expires {text!r}: expected 12h or 30d.")
    return float(int(found[1]) * SECONDS[found[2]])
