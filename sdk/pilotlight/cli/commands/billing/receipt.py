"""`pilotlight billing receipt`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.output import note, print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.receipt_api import CallReceipt, ReceiptLine

COLUMNS = ("day", "function", "version", "price", "share", "ns", "USD", "ended")


def show_receipt(
    call: Annotated[str, typer.Argument(help="the id of a call, or the run of a job")],
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show what a call was billed, and which call made it.

    It is there some seconds after the call has ended, for 100 days.

    \b
    pilotlight billing receipt call_local_1_0tp4dtdy1h4m4xakmawc
    """
    found = ask(client().billing.get_receipt(call))
    if as_json:
        print_json(found)
        return
    print_table(
        COLUMNS, [_row(line) for line in found.lines], empty="Nothing was billed.", right=("share", "ns", "USD")
    )
    for sentence in _sentences(found):
        note(sentence)


def _row(line: ReceiptLine) -> tuple[str, ...]:
    share = f"{line.ppm / 10_000:g} %"
    function = f"{line.function} ({line.stage})" if line.stage else line.function
    return (line.day, function, line.version, line.price, share, str(line.ns), line.cost, line.outcome)


def _sentences(found: CallReceipt) -> list[str]:
    """What stands below the lines."""
    sentences = [f"{found.cost} {found.currency} in all."]
    if found.parent:
        sentences.append(f"Made by the call {found.parent}.")
    if found.nested:
        sentences.append(f"It made {len(found.nested)} calls, with receipts of their own: {', '.join(found.nested)}.")
    return sentences
