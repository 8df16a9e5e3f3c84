"""`pilotlight explain`: why a function has the containers that it has, and what became of one call."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.arguments import read_ref
from pilotlight.cli.call_waterfall import waterfall_lines
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.definitions.errors import BadInput

app = command_app()
IDS = re.compile(r"(call|req)_[^.]*$")
"""A call's or a request's id has no dot, which the name of a function has."""
KEPT = "'pilotlight calls' lists those that are kept; 'pilotlight logs APP --call ID' has what one printed."
AGO = re.compile(r"(\d{1,6})([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@app.command()
@advising(not_found=DEPLOYED, unknown_call=KEPT)
def explain(
    function: Annotated[
        str,
        typer.Argument(
            metavar="FUNCTION|CALL",
            help="app.function; of a class, app.Class; or the id of a call, call_… or req_… as its error named it",
        ),
    ],
    at: Annotated[
        str, typer.Option(help="as it was then: 10m or 2h ago, 14:05 of today, or 2026-12-01T08:00:00+01:00")
    ] = "",
    advised: Annotated[
        bool, typer.Option("--advised", help="what a controller with --advise would have, in place of the leader")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Explain a function's containers, or where a call's time went.

    Of a function it says why it has the containers that it has: which rule decided the number, what its past foretells,
    what it would take to have one more, and how that changed; operators also read where the containers are. Of a call
    it says where its time went, what it waited for and what was tried; calls are kept for a while if they failed, were
    slow or were sampled ('pilotlight calls').

    \b
    pilotlight explain search.embed
    pilotlight explain search.embed --at 10m
    pilotlight explain search.embed --at 14:05 --json
    pilotlight explain search.embed --advised
    pilotlight explain call_local_1_0tp4dtdy1h4m4xakmawc
    """
    if IDS.match(function):
        _explain_call(function, as_json=as_json)
        return
    found, _ = read_ref(function, None)
    then = moment(at, datetime.now().astimezone()) if at else ""
    explanation = ask(client().platform.explain_function(str(found), then, advised=advised))
    if as_json:
        print_json(explanation)
        return
    for line in explanation["lines"]:
        print_text(line)


def _explain_call(call_id: str, *, as_json: bool) -> None:
    found = ask(client().kept_calls.explain_call(call_id))
    if as_json:
        print_json(found)
        return
    for line in waterfall_lines(found):
        print_text(line)


def moment(text: str, now: datetime) -> str:
    """The instant that `text` means at `now`, in ISO 8601 with a zone.

    Raises:
        BadInput: it means none.
    """
    try:
        if ago := AGO.fullmatch(text):
            return (now - timedelta(seconds=int(ago[1]) * SECONDS[ago[2]])).isoformat()
        if re.fullmatch(r"\d{1,2}:\d{2}", text):
            hour, minute = (int(part) for part in text.split(":"))
            return now.replace(hour=hour, minute=minute, second=0, microsecond=0).isoformat()
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        expected = "10m or 2h ago, a time of today such as 14:05, or an instant such as 2026-12-01T08:00:00+01:00"
        raise BadInput(f"--at {text!r}: expected {expected}.", field="at") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)).isoformat()
