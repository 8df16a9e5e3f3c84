"""`pilotlight key`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from msgspec import UNSET

from pilotlight.cli.advice import advising
from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, note, print_json, print_text, span
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import RotateRequest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Tenant = Annotated[str | None, typer.Option(help="another tenant's: for operators")]
Id = Annotated[str, typer.Argument(help="the key's id, as listed")]
Expires = Annotated[str | None, typer.Option(help="when it ends: 12h, 30d")]


@app.callback()
def group() -> None:
    """API keys."""


@app.command()
def create(
    scopes: Annotated[str, typer.Option(help="what it may do, with commas between")] = "invoke",
    expires: Expires = None,
    label: Annotated[str, typer.Option(help="what it is for")] = "",
    certificate: Annotated[
        str, typer.Option(help="holder of client certificates that stand for it, in place of a secret: for operators")
    ] = "",
    break_glass: Annotated[
        bool, typer.Option("--break-glass", help="for days on which nobody can log in: each request is audited")
    ] = False,
    tenant: Tenant = None,
    as_json: Json = False,
) -> None:
    """Make an API key. It is shown once, on stdout.

    Scopes: invoke, deploy, read, admin (all of these), operator (runs the platform).

    \b
    export PILOTLIGHT_API_KEY=$(pilotlight key create --scopes invoke --expires 30d)
    pilotlight key create --tenant acme --scopes admin
    pilotlight key create --tenant acme --certificate reports --scopes read
    pilotlight key create --tenant ops --scopes operator --break-glass
    """
    request = KeyRequest(
        scopes=tuple(part.strip() for part in scopes.split(",") if part.strip()),
        expires_in_s=None if expires is None else read_span(expires, "--expires"),
        label=label,
        certificate=certificate or UNSET,
        break_glass=break_glass or UNSET,
    )
    made = ask(client().tenancy.create_key(request, tenant))
    if as_json:
        print_json(made)
        return
    scopes_text = ", ".join(made.get("scopes", ()))
    if certificate:
        print_text(f"Certificates of {certificate} stand for the key {made['id']}, which may {scopes_text}.")
        return
    print_text(made["key"])
    note(f"{made['id']} may {scopes_text}; it is not shown again.")


@app.command(name="list")
def list_keys(tenant: Tenant = None, as_json: Json = False) -> None:
    """List API keys, without their secrets.

    \b
    pilotlight key list
    pilotlight key list --tenant acme --json
    """
    keys = ask(client().tenancy.list_keys(tenant))
    if as_json:
        print_json(keys)
        return
    print_table(
        ("id", "label", "scopes", "created", "expires"),
        [_row(key) for key in keys],
        empty="No keys.",
        less=("created", "label"),
    )


@app.command()
def rotate(
    id: Id,  # noqa: A002 - what the API calls it
    overlap: Annotated[str, typer.Option(help="how long both are valid: 0s, 12h, 7d")] = "1d",
    expires: Expires = None,
    tenant: Tenant = None,
    as_json: Json = False,
) -> None:
    """Make a key's successor, with its scopes and label. The old key stays valid for a while.

    \b
    export PILOTLIGHT_API_KEY=$(pilotlight key rotate 8c1f0eXY --overlap 12h)
    """
    request = RotateRequest(
        overlap_s=read_span(overlap, "--overlap"),
        expires_in_s=None if expires is None else read_span(expires, "--expires"),
    )
    made = ask(client().tenancy.rotate_key(id, request, tenant))
    if as_json:
        print_json(made)
        return
    print_text(made["key"])
    left = float(made["replaced_until"]) - time.time()
    old = f"which ends in {span(left)}" if left > 0 else "which is not valid any more"
    note(f"{made['id']} follows {id}, {old}; it is not shown again.")


@app.command()
def revoke(
    id: Id,  # noqa: A002
    tenant: Tenant = None,
    force: Annotated[bool, typer.Option("--force", help="also the last key that may manage keys")] = False,
    as_json: Json = False,
) -> None:
    """End an API key at once.

    \b
    pilotlight key revoke 8c1f0eXY
    """
    with advising(conflict="Make another one with 'pilotlight key create --scopes …' first, or add --force."):
        answer = ask(client().tenancy.revoke_key(id, tenant, force=force))
    if as_json:
        print_json(answer)
    else:
        print_text(f"{id} was revoked already." if answer.get("already") else f"Revoked {id}.")


@app.command()
def show(as_json: Json = False) -> None:
    """Print this machine's key, or the token of its login, for scripts.

    \b
    curl -H "Authorization: Bearer $(pilotlight key show)" …
    """
    found = client()
    if as_json:
        print_json({"url": found.config.url, "api_key": found.bearer()})
    else:
        print_text(found.bearer())


def _row(key: dict[str, Any]) -> tuple[Any, ...]:
    expires = key.get("expires_at")
    return (
        key.get("id", ""),
        key.get("label") or (f"certificate {holder}" if (holder := key.get("certificate")) else ""),
        ", ".join((*key.get("scopes", ()), *["break-glass"] * bool(key.get("break_glass")))),
        ago(float(key.get("created_at") or 0.0)),
        "revoked" if key.get("revoked") else _until(float(expires)) if expires else "never",
    )


def _until(unix: float) -> str:
    left = unix - time.time()
    return f"in {span(left)}" if left > 0 else "expired"
