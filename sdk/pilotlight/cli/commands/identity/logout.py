"""`pilotlight logout`."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.session import ask
from pilotlight.client.login.issuer_client import IssuerClient, IssuerUnreachable, LoginFailed
from pilotlight.client.login.login_keeper import locked_login
from pilotlight.client.login.saved_login import LOGIN_FILE, SavedLogin, load_login, remove_login
from pilotlight.client.transport.config import home
from pilotlight.definitions.errors import Misuse

app = command_app()


@app.command()
def logout(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Log out: the login is ended at its issuer, and forgotten here.

    \b
    pilotlight logout
    """
    file = home(os.environ) / LOGIN_FILE
    login, was_there = ask(_forget(file))
    ended = login is not None and ask(_revoke(login))
    if as_json:
        print_json({"logged_out": was_there, "ended": ended})
        return
    print_text("Logged out." if was_there else "Nobody was logged in.")
    if was_there and not ended:
        note("Its issuer was not told: what it has given for this login ends by itself.")


async def _forget(file: Path) -> tuple[SavedLogin | None, bool]:
    """Remove the login; return what could be read of it, and whether there was one. No renewal writes it anew."""
    async with AsyncExitStack() as stack:
        with suppress(LoginFailed):  # what hangs is not waited for: it finds the login gone
            await stack.enter_async_context(locked_login(file))
        try:
            login = load_login(file)
        except Misuse as error:
            note(error.detail)
            login = None
        return login, remove_login(file)


async def _revoke(login: SavedLogin) -> bool:
    """Tell the issuer (RFC 7009); return whether it has heard."""
    if not (login.revocation_endpoint and login.refresh_token):
        return False
    form = {"token": login.refresh_token, "token_type_hint": "refresh_token", "client_id": login.client_id}
    try:
        async with IssuerClient(login.issuer_ca_file) as issuer:
            await issuer.send(login.revocation_endpoint, form)
    except IssuerUnreachable:
        return False
    return True
