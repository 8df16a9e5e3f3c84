"""`pilotlight calls`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.arguments import read_ref
from pilotlight.cli.command_app import command_app
from pilotlight.cli.local_times import show_instant
from pilotlight.cli.output import note, print_json
from pilotlight.cli.printable import unheard_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.seeing.trace_api import KeptCallRow

app = command_app()
COLUMNS = ("call", "at", "function", "kept", "code", "took", "longest", "attempts")
EMPTY = "No calls are kept: none has failed, was slow or was sampled lately."


@app.command()
def calls(
    function: Annotated[str, typer.Option(help="only this one's: app.function")] = "",
    kept: Annotated[str, typer.Option(help="only those kept for this reason: error, slow, asked or sampled")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="how many at most")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """List calls that failed, were slow or were sampled.

    The newest come first. 'pilotlight explain CALL' says why one was slow, failed or was refused.

    \b
    pilotlight calls
    pilotlight calls --function search.embed --kept slow
    """
    name = str(read_ref(function, None)[0]) if function else ""
    found = ask(client().kept_calls.list_kept(name, kept, limit))
    if as_json:
        print_json(found)
        return
    print_table(
        COLUMNS,
        [_row(call) for call in found.calls],
        empty=EMPTY,
        right=("took", "attempts"),
        less=("attempts", "longest", "at", "kept"),
    )
    if found.unanswered:
        note(f"Did not answer, and may keep more: {unheard_text(found.unanswered)}.")


def _row(call: KeptCallRow) -> tuple[str, ...]:
    longest = f"{call.longest} {_ms(call.longest_ms)}" if call.longest else ""
    cold = " (cold)" if call.cold_start else ""
    return (
        call.id, show_instant(call.arrived_at), call.function or "-", call.kept, call.code or "-",
        _ms(call.total_ms), f"{longest}{cold}", str(call.attempts),
    )  # fmt: skip


def _ms(ms: float) -> str:
    return f"{ms:,.0f} ms"
