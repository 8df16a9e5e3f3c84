"""`pilotlight price`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.price_api import MILLION, PriceInfo

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Price = Annotated[str, typer.Argument(help="its name, such as h100, cpu_core, prompt_tokens or tenant.acme")]
COLUMNS = ("price", "USD per hour of", "now", "to come", "from")
"""Of the table. `from` is who has set it."""


@app.callback()
def group() -> None:
    """What an hour of a device, a core or a GiB costs."""


@app.command(name="list")
def list_prices(as_json: Json = False) -> None:
    """List the prices: now, and from when on they change.

    \b
    pilotlight price list
    pilotlight price list --json
    """
    found = ask(client().platform.list_prices())
    if as_json:
        print_json(found)
    else:
        print_table(COLUMNS, [_row(price) for price in found.prices], empty="No prices.", right=("now",))


@app.command(name="set")
def set_price(
    price: Price,
    usd_per_hour: Annotated[str, typer.Argument(help="dollars, at most nine places; 0 bills nothing")],
    starts: Annotated[
        str | None, typer.Option("--from", help="2026-12-01 (UTC) or 2026-12-01T08:00:00Z; default: in half a minute")
    ] = None,
    minimum_ms: Annotated[
        int | None, typer.Option("--minimum-ms", help="a start of a call is billed for so long at least")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a price from a date on. What runs before it is billed at the price of before.

    A price that was set so holds whatever a gateway's price file says. The price of a unit, such as prompt_tokens, is
    of a million; that of tenant.NAME is what this tenant pays of a dollar: 0.8 are 20 % off.

    \b
    pilotlight price set h100 3.5
    pilotlight price set l4 0.8 --minimum-ms 100
    pilotlight price set prompt_tokens 0.15
    pilotlight price set tenant.acme 0.8 --from 2027-01-01
    pilotlight price set h100 3.25 --from 2027-01-01
    pilotlight price set memory_gib 0 --from 2026-12-01T08:00:00+01:00
    """
    _show(ask(client().platform.set_price(price, usd_per_hour, starts, minimum_ms)), as_json=as_json)


@app.command()
def drop(price: Price, as_json: Json = False) -> None:
    """Take back the changes of a price that are to come.

    \b
    pilotlight price drop h100
    """
    _show(ask(client().platform.drop_price_changes(price)), as_json=as_json)


def _show(price: PriceInfo, *, as_json: bool) -> None:
    if as_json:
        print_json(price)
        return
    then = _to_come(price)
    per = "for" if price.of == MILLION or price.of.startswith("dollar") else "per hour of"
    least = f", at least {price.minimum_ms} ms of each start" if price.minimum_ms else ""
    print_text(
        f"{price.price}: {price.usd_per_hour} USD {per} a {price.of}{least}{f', then {then}' if then else ''}"
    )  # fmt: skip


def _row(price: PriceInfo) -> tuple[str, ...]:
    return price.price, price.of, price.usd_per_hour, _to_come(price), price.source


def _to_come(price: PriceInfo) -> str:
    return ", ".join(
        f"{rate.usd_per_hour}{f' (at least {rate.minimum_ms} ms)' if rate.minimum_ms else ''} from {rate.starts}"
        for rate in price.to_come
    )
