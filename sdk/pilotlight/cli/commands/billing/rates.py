"""`pilotlight billing rates`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.output import print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.price_api import PriceInfo

COLUMNS = ("price", "of", "USD per hour", "USD per second", "from")


def list_rates(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """List what an hour was, is and will be billed at.

    A line for each rate, with the instant from which it holds.

    \b
    pilotlight billing rates
    pilotlight billing rates --json
    """
    found = ask(client().platform.list_prices())
    if as_json:
        print_json(found)
        return
    rows = [row for price in found.prices for row in _rows(price)]
    print_table(COLUMNS, rows, empty="No prices.", right=("USD per hour", "USD per second"))


def _rows(price: PriceInfo) -> list[tuple[str, ...]]:
    """The rates that have begun and those to come; a price without any has the book's own."""
    rates = [(rate.usd_per_hour, rate.starts or "the beginning") for rate in (*price.past, *price.to_come)]
    return [
        (price.price, price.of, usd, f"{float(usd) / 3_600:.4g}", starts)
        for usd, starts in rates or [(price.usd_per_hour, "the beginning")]
    ]
