"""`pilotlight billing credit`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.credit_api import CreditList, CreditRequest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Tenant = Annotated[str, typer.Argument(help="the tenant's name")]
GRANTS = ("grant", "USD", "left", "from", "ends", "priority", "note")
HISTORY = ("day", "what", "grant", "USD", "balance")


@app.callback()
def group() -> None:
    """What a tenant has paid ahead."""


@app.command()
def show(
    tenant: Tenant,
    history: Annotated[bool, typer.Option("--history", help="how the balance came about")] = False,
    as_json: Json = False,
) -> None:
    """Show a tenant's balance, and its grants.

    \b
    pilotlight billing credit show acme
    pilotlight billing credit show acme --history
    """
    found = ask(client().tenancy.list_credits(tenant))
    if as_json:
        print_json(found)
        return
    _show(tenant, found)
    if history:
        rows = [(one.day, one.change.value, one.grant, one.usd, one.balance_usd) for one in found.history]
        print_table(HISTORY, rows, empty="Nothing has happened yet.", right=("USD", "balance"))


@app.command()
def grant(
    tenant: Tenant,
    usd: Annotated[str, typer.Argument(help="dollars, at most nine places")],
    ends: Annotated[str | None, typer.Option(help="the UTC day from which on it may not be spent: 2027-01-01")] = None,
    priority: Annotated[int, typer.Option(help="the grant with the smallest is spent first")] = 0,
    note: Annotated[str, typer.Option(help="what it is for")] = "",
    as_json: Json = False,
) -> None:
    """Give a tenant credit, from today on.

    \b
    pilotlight billing credit grant acme 500
    pilotlight billing credit grant acme 25 --ends 2027-01-01 --priority -1 --note "to begin with"
    """
    asked = CreditRequest(usd=usd, ends=ends, priority=priority, note=note)
    found = ask(client().tenancy.grant_credit(tenant, asked))
    if as_json:
        print_json(found)
    else:
        _show(tenant, found)


@app.command()
def end(
    tenant: Tenant,
    grant: Annotated[str, typer.Argument(help="its id in 'credit show'")],
    as_json: Json = False,
) -> None:
    """End a grant today: what is left of it lapses.

    \b
    pilotlight billing credit end acme grant_1f2e3d4c
    """
    found = ask(client().tenancy.end_credit(tenant, grant))
    if as_json:
        print_json(found)
    else:
        _show(tenant, found)


def _show(tenant: str, found: CreditList) -> None:
    owed = f", {found.owed_usd} of it owed" if found.owed_usd != "0" else ""
    print_text(f"{tenant} has {found.balance_usd} USD{owed}.")
    rows = [
        (one.id, one.usd, one.left_usd, one.begins, one.ends or "never", one.priority, one.note) for one in found.grants
    ]
    print_table(GRANTS, rows, empty="No grants.", right=("USD", "left", "priority"))
