"""`pilotlight billing rates`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.output import print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.price_api import MILLION, PriceInfo, PriceRate

COLUMNS = ("price", "of", "USD per hour", "USD per second", "at least", "from")


def list_rates(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """List what an hour was, is and will be billed at.

    A line for each rate, with the instant from which it holds. A unit's is for a million; that of tenant.NAME is what
    you pay of each dollar of the others.

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
    rates = (*price.past, *price.to_come) or (PriceRate(starts=None, usd_per_hour=price.usd_per_hour),)
    of_time = price.of != MILLION and not price.of.startswith("dollar")
    return [
        (
            price.price, price.of, rate.usd_per_hour, f"{float(rate.usd_per_hour) / 3_600:.4g}" if of_time else "",
            f"{rate.minimum_ms} ms" if rate.minimum_ms else "", rate.starts or "the beginning",
        )
        for rate in rates
    ]  # fmt: skip
