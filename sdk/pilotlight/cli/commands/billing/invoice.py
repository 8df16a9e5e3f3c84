"""`pilotlight billing invoice`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.billing_api import Invoice, InvoiceList
from pilotlight_core.model.units import shown_money

HEADS = ("invoice", "month", "state", "amount")
LINES = ("function", "state", "price", "hours", "calls", "cost")
NUMBERS = ("amount", "hours", "calls", "cost")
STATES = {
    "draft": "a draft: the month runs",
    "grace": "not final yet: late usage is added until {final}",
    "final": "final",
}


def show_invoice(
    month: Annotated[str | None, typer.Argument(help="2026-11; without it: the list of invoices")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="another tenant's, for operators")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, with every digit")] = False,
) -> None:
    """Show a month's invoice, or the months that there are.

    An invoice is a draft while its month runs. Then it has some days of grace, in which late usage is added; from the
    last of them on it is final, and what comes later is in the next one.

    \b
    pilotlight billing invoice
    pilotlight billing invoice 2026-11
    pilotlight billing invoice 2026-11 --json
    """
    if month is None:
        _show_list(ask(client().billing.list_invoices(tenant)), as_json=as_json)
        return
    invoice = ask(client().billing.get_invoice(month, tenant))
    if as_json:
        print_json(invoice)
    else:
        _show(invoice)


def _show_list(found: InvoiceList, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [(head.number, head.month, head.state, f"{head.amount} {found.currency}") for head in found.invoices]
    print_table(HEADS, rows, empty="Nothing was used.", right=NUMBERS)


def _show(invoice: Invoice) -> None:
    state = STATES.get(invoice.state, invoice.state).format(final=invoice.final_from)
    print_text(f"Invoice {invoice.number} of {invoice.tenant}, {invoice.month}: {state}")
    rows = [
        (line.function, line.state, line.price, f"{float(line.hours):.4g}", str(line.calls), shown_money(line.cost))
        for line in invoice.lines
    ]
    print_table(LINES, rows, empty="Nothing was used.", right=NUMBERS)
    for line in invoice.of_before:
        note(f"Of {line.day}, {line.why.replace('_', ' ')}: {shown_money(line.cost)} {invoice.currency}")
    if float(invoice.discount):
        print_text(f"Discount, in these lines: {shown_money(invoice.discount)} {invoice.currency}")
    print_text(f"To pay: {invoice.amount} {invoice.currency}")
