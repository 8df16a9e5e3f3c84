"""`pilotlight run`."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from pilotlight.cli.arguments import read_arguments
from pilotlight.cli.command_app import command_app
from pilotlight.cli.commands.call import show_call
from pilotlight.cli.commands.deploy import upload_progress
from pilotlight.cli.output import note
from pilotlight.cli.printable import printable_line
from pilotlight.cli.session import ask, client
from pilotlight.client import shared_portal
from pilotlight.client.transport.wire import OutgoingCall
from pilotlight.definitions.errors import Misuse, NotFound, PilotlightError
from pilotlight.packing import (
    DeployTarget,
    find_target,
    load_apps,
    make_bundle,
    pack_artifacts,
    paths_of_artifacts,
)
from pilotlight.packing.deploys import deploy
from pilotlight.packing.target import SEPARATOR
from pilotlight_core.model.ids import token

app = command_app()

ENDS_IN_S = 60.0
"""When a run ends whose command has died."""
RENEWED_EVERY_S = 20.0
LONGEST_APP = 63 - len("-run-123456")
"""The part of the app's name that the run's has."""
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
    """Call a function of a file as it is now, beside what is deployed.

    It gets a name of its own, which ends with the command. Lines that it prints go to stderr.

    \b
    pilotlight run examples/hello/app.py::greet name=Ada
    """
    place, separator, name = target.partition(SEPARATOR)
    if not separator:
        raise Misuse(f"{target!r} names no function: expected PATH::function.", field="target")
    name, _, method = name.partition(".")
    given = read_arguments(arguments or [], whole)
    with _running(find_target(f"{place}{SEPARATOR}{name}", within=Path.cwd()), name) as ref:
        outgoing = OutgoingCall(path=f"/v1/functions/{ref}/calls", input=given, method=method or None, typed=False)
        with _following(ref):
            show_call(ref, outgoing, deadline=deadline, stream=False, as_json=as_json)


@contextmanager
def _running(target: DeployTarget, function: str) -> Iterator[str]:
    """Deploy the function as a run, under a name of its own, and delete it after the block; the ref to call."""
    apps = load_apps(target)
    app_name, app = next((name, one) for name, one in apps.items() if function in one.functions)
    loaded = app.functions[function]
    bundle, artifacts = make_bundle(target, paths_of_artifacts(apps)), pack_artifacts({function: loaded})
    name, platform = f"{app_name[:LONGEST_APP]}-run-{token(6)}", client().platform
    with _leaving_on_sigterm():
        try:
            with upload_progress(name) as progress:
                sent = deploy(
                    platform,
                    name,
                    {function: loaded.spec},
                    bundle,
                    artifacts,
                    base=app.base,
                    requirements=app.requirements,
                    ends_in_s=ENDS_IN_S,
                    progress=progress,
                )
                response = ask(sent)
        except PilotlightError:
            raise  # it was refused: there is nothing to delete
        except BaseException:
            _delete(name)
            raise
        renewing = shared_portal().start(_renew(name))
        try:
            for warning in response.warnings:
                note(f"warning: {warning}")
            yield f"{name}.{function}"
        finally:
            renewing.leave()
            _delete(name)


def _delete(name: str) -> None:
    try:
        ask(client().platform.delete_app(name))
    except NotFound:
        pass  # it was not there yet, or has ended by itself
    except PilotlightError as error:
        note(f"{name} is not deleted ({error.detail}), and ends within {ENDS_IN_S:.0f} s.")


async def _renew(name: str) -> None:
    """Let the run live as long as the command does."""
    while True:
        await asyncio.sleep(RENEWED_EVERY_S)
        with suppress(PilotlightError):  # it is tried again, twice before it ends
            await client().platform.renew_app(name, ENDS_IN_S)


@contextmanager
def _leaving_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what follows it is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
