"""`pilotlight billing`."""

from __future__ import annotations

from pilotlight.cli.command_app import command_app
from pilotlight.cli.commands.billing import budget, credit
from pilotlight.cli.commands.billing.invoice import show_invoice
from pilotlight.cli.commands.billing.rates import list_rates
from pilotlight.cli.commands.billing.receipt import show_receipt

app = command_app(no_args_is_help=True)
app.command(name="invoice")(show_invoice)
app.command(name="rates")(list_rates)
app.command(name="receipt")(show_receipt)
app.add_typer(budget.app, name="budget")
app.add_typer(credit.app, name="credit")


@app.callback()
def group() -> None:
    """What is owed, at which rates, and what tenants may spend."""
