"""`pilotlight whoami`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text, span
from pilotlight.cli.session import ask, client

app = command_app()


@app.command()
def whoami(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Show what the platform takes this user for.

    \b
    pilotlight whoami
    """
    platform = client()
    caller = ask(platform.issuers.describe_caller())
    if as_json:
        print_json(caller)
        return
    who = f"{caller.subject} ({caller.issuer})" if caller.issuer else f"the key {caller.key}"
    print_text(f"{who} of {caller.tenant} may {', '.join(caller.scopes)} at {platform.config.url}.")
    if caller.issuer:
        note(f"In the audit log and in usage it is {caller.key}.")
    if caller.break_glass:
        note("It is a break-glass key: each request with it is audited.")
    if caller.expires_at is not None and not caller.issuer:
        note(f"It ends in {span(caller.expires_at - time.time())}.")
