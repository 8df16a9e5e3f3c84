"""`pilotlight call`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pilotlight.cli.arguments import read_arguments, read_ref
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import function_names
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.session import ask, client, each
from pilotlight.cli.timeline import Timeline, summary
from pilotlight.client.transport.retry import QUICK_CONNECT_S, RequestRetries
from pilotlight.client.transport.wire import OutgoingCall
from pilotlight.definitions.errors import PilotlightError

app = command_app()
SHOWN_FROM_S = 0.5
"""Shorter waits are not mentioned."""


@app.command()
def call(
    ref: Annotated[
        str,
        typer.Argument(help="app.function, app.Class.method, app.function@v7", autocompletion=function_names),
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="name=value; values are JSON if they can be")] = None,
    method: Annotated[str | None, typer.Option("--method", "-m", help="the method of a class")] = None,
    whole: Annotated[str | None, typer.Option("--input", help="all arguments: JSON, @FILE, or - for stdin")] = None,
    deadline: Annotated[float | None, typer.Option(help="seconds to wait in all", min=0.001)] = None,
    id: Annotated[str | None, typer.Option(help="an id of your own (cid_…), to cancel it by")] = None,  # noqa: A002
    stream: Annotated[bool, typer.Option("--stream", help="print every event, one JSON a line")] = False,
    spawn: Annotated[bool, typer.Option("--spawn", help="store it as a job, and print its id")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the whole response, not only the output")] = False,
) -> None:
    """Call a deployed function. Its answer goes to stdout; chunks of a generator, one a line.

    The steps of a container's start go to stderr. Ctrl-C cancels the call. With --spawn it is stored and runs whether
    or not this machine goes on; --deadline is then the time in which it must start.

    \b
    pilotlight call hello.greet name=Ada
    pilotlight call embeddings.MiniLM.embed text="A small flame"
    pilotlight call stream.words --input '{"text": "one two"}' --json
    JOB=$(pilotlight call hello.greet name=Ada --spawn) && pilotlight job get $JOB --wait 60
    """
    if spawn and stream:
        raise typer.BadParameter("--spawn waits for no events: take --stream away, or follow it with 'pilotlight job'")
    found, method = read_ref(ref, method)
    outgoing = OutgoingCall(
        path=f"/v1/functions/{found}/calls",
        input=read_arguments(arguments or [], whole),
        method=method,
        id=id,
        typed=False,
    )
    if spawn:
        _submit(outgoing, deadline, as_json=as_json)
    else:
        show_call(str(found), outgoing, deadline=deadline, stream=stream, as_json=as_json)


def _submit(call: OutgoingCall, deadline: float | None, *, as_json: bool) -> None:
    job = ask(client().jobs.submit(call, deadline=deadline))
    if as_json:
        print_json({"id": job})
    else:
        print_text(job)
        note(f"It is stored; 'pilotlight job get {job} --wait 60' prints its answer.")


def show_call(label: str, call: OutgoingCall, *, deadline: float | None, stream: bool, as_json: bool) -> None:
    """Make a call, and print its events."""
    waits: list[float] = []

    def on_wait(error: PilotlightError, seconds: float) -> None:
        waits.append(seconds)
        if seconds >= SHOWN_FROM_S:
            note(f"{error.detail} Trying again in {seconds:.1f} s; Ctrl-C ends it.")

    retries = RequestRetries(deadline, connect_within=QUICK_CONNECT_S, on_wait=on_wait)
    chunks = False
    with Timeline(label) as timeline:
        for name, data in each(client().calls.stream_events(call, retries)):
            if stream:
                timeline.hide()
                print_json({"event": name, **data}, indent=False)
            elif name == "stage":
                timeline.on_stage(data)
            else:
                timeline.hide()
                chunks = chunks or name == "chunk"
                _show(name, data, sum(waits), as_json=as_json, lines=chunks)


def _show(name: str, data: dict[str, Any], waited_s: float, *, as_json: bool, lines: bool) -> None:
    """Print a chunk or a result; `lines`: of a stream, whose JSON is a line each."""
    if name == "chunk":
        print_json(data if as_json else data.get("value"), indent=False)
    elif as_json:
        print_json(data | ({"waited_ms": waited_s * 1000} if waited_s else {}), indent=not lines)
    else:
        if data.get("output") is not None:
            print_json(data["output"])
        note(summary(data, waited_s))
