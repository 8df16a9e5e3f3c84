"""`pilotlight run`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.arguments import read_arguments
from pilotlight.cli.command_app import command_app
from pilotlight.cli.commands.call import show_call
from pilotlight.cli.commands.deploy import deploy_target
from pilotlight.cli.output import note
from pilotlight.cli.printable import printable_line
from pilotlight.cli.session import client
from pilotlight.client import shared_portal
from pilotlight.client.transport.wire import OutgoingCall
from pilotlight.definitions.errors import Misuse, PilotlightError
from pilotlight.packing import find_target
from pilotlight.packing.target import SEPARATOR

app = command_app()

LAST_LINES_S = 1.0
"""How long to wait for the last lines of the log."""


@app.command()
def run(
    target: Annotated[str, typer.Argument(help="PATH::function or PATH::Class.method")],
    arguments: Annotated[list[str] | None, typer.Argument(help="name=value; values are JSON if they can be")] = None,
    whole: Annotated[str | None, typer.Option("--input", help="all arguments: JSON, @FILE, or - for stdin")] = None,
    deadline: Annotated[float | None, typer.Option(help="seconds to wait in all", min=0.001)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the whole response, not only the output")] = False,
) -> None:
    """Deploy an app and call one of its functions.

    Lines that it prints go to stderr.

    \b
    pilotlight run examples/hello/app.py::greet name=Ada
    """
    place, separator, name = target.partition(SEPARATOR)
    if not separator:
        raise Misuse(f"{target!r} names no function: expected PATH::function.", field="target")
    name, _, method = name.partition(".")
    given = read_arguments(arguments or [], whole)
    deployed = deploy_target(find_target(f"{place}{SEPARATOR}{name}", within=Path.cwd()))
    ref = next(f"{response.app}.{name}" for response, functions in deployed if name in functions)
    outgoing = OutgoingCall(path=f"/v1/functions/{ref}/calls", input=given, method=method or None, typed=False)
    with _following(ref):
        show_call(ref, outgoing, deadline=deadline, stream=False, as_json=as_json)


@contextmanager
def _following(ref: str) -> Iterator[None]:
    """Print the function's log during the block."""
    name, _, function = ref.partition(".")
    task = shared_portal().start(_follow(name, function))
    try:
        yield
        wait([task.future], LAST_LINES_S)
    finally:
        task.leave()


async def _follow(name: str, function: str) -> None:
    lines = client().platform.read_logs(name, function=function, tail=0, follow=True)  # from now on
    try:
        async with aclosing(lines):
            async for line in lines:
                note(f"  | {printable_line(str(line.get('text', '')))}")
    except PilotlightError as error:
        note(f"  | (its log cannot be followed: {error.detail})")
