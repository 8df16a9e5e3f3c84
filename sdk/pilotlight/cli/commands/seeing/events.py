"""`pilotlight events`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.local_times import show_instant
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.printable import printable_line
from pilotlight.cli.session import ask, client, each
from pilotlight_core.model.api.seeing.event_api import ShownEvent

app = command_app()


@app.command()
def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as things happen")] = False,
    since: Annotated[str, typer.Option(help="30m, 12h or 7d ago, or unix seconds")] = "7d",
    kind: Annotated[str, typer.Option(help="only kinds that begin so, such as breaker or function.scaled")] = "",
    function: Annotated[str, typer.Option(help="only of this one: app.function")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="at most so many, the last ones")] = 100,
    tenant: Annotated[str, typer.Option(help="of another tenant, for operators")] = "",
    of_all: Annotated[bool, typer.Option("--all", help="of all tenants and the platform, for operators")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show what happened to functions and nodes, and why.

    \b
    pilotlight events --since 1h
    pilotlight events -f --kind breaker
    pilotlight events --all --kind node
    """
    named = {"since": since, "kind": kind, "function": function, "limit": str(limit), "tenant": tenant,
             "all": "true" if of_all else ""}  # fmt: skip
    asked = {name: value for name, value in named.items() if value}
    if follow:
        for one in each(client().events.follow_events(asked)):
            print_json(msgspec.to_builtins(one), indent=False) if as_json else _show(one)
        return
    found = ask(client().events.list_events(asked))
    if as_json:
        print_json(found)
        return
    for one in found.events:
        _show(one)
    if not found.events:
        note(f"Nothing happened in the last {since}.")


def _show(event: ShownEvent) -> None:
    whose = f" {event.tenant}:" if event.tenant else ""
    print_text(f"{show_instant(event.at)}  {event.kind:<18}{whose} {printable_line(event.says)}")
