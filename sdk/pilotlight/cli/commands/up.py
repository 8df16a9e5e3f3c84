"""`pilotlight up`."""

from __future__ import annotations

import ctypes
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import console, note, on_terminal
from pilotlight.cli.platform_commands import command_line

app = command_app()
ANNOUNCEMENT = "Pilotlight is up"
"""The start of the platform's line when it is ready, which is replaced."""
PR_SET_PDEATHSIG = 1
NEXT = """
Next, in another terminal:
{activate}  pilotlight deploy examples/hello/app.py
  pilotlight call hello.greet name=Ada
  pilotlight container list
Ctrl-C stops it; what is deployed stays."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def up(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(help="port of the HTTP API; 0: any free one")] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="where this machine keeps everything; PILOTLIGHT_HOME=DIR speaks to this one of several platforms"
        ),
    ] = None,
    cpu_slots: Annotated[int | None, typer.Option(help="CPU slots to offer; default: one a core")] = None,
    blanks: Annotated[int | None, typer.Option(help="started sandboxes to keep ready")] = None,
    sandbox: Annotated[str | None, typer.Option(help="bubblewrap, or process: no isolation, one tenant only")] = None,
) -> None:
    """Run the platform on this machine until Ctrl-C.

    `pilotlight up -- --help` lists more options.

    \b
    pilotlight up
    pilotlight up --port 8470 --cpu-slots 4
    pilotlight up --fake-gpus "2xH100:mig,1xT4"          (GPUs in software)
    """
    named = {
        "--port": port,
        "--state-dir": state_dir,
        "--cpu-slots": cpu_slots,
        "--blanks": blanks,
        "--sandbox": sandbox,
    }
    flags = [word for flag, value in named.items() if value is not None for word in (flag, str(value))]
    raise typer.Exit(supervise([*command_line("up"), *flags, *context.args]))


def supervise(command: list[str]) -> int:
    """Run the platform as a child, announce it, and pass signals on; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="pilotlight-up-") as folder:
        ready = Path(folder) / "ready.json"
        # A session of its own: the terminal's Ctrl-C reaches the child once, through us, and it ends in its order.
        child = subprocess.Popen(
            [*command, "--json-ready", str(ready)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        with child, _status() as show, _passing_signals_to(child, show):
            show("starting nats, gateway, controller, duties, agent …")
            for line in child.stdout or ():
                if line.startswith(ANNOUNCEMENT) and ready.exists():
                    show("")
                    _welcome(ready)
                else:
                    note(line.rstrip())
    return child.returncode


def _welcome(ready: Path) -> None:
    found = msgspec.json.decode(ready.read_bytes())
    print(f"Pilotlight is up at {found['url']} (state in {found['state_dir']}, key in {found['api_key_file']}).")
    print(NEXT.format(activate=_activate()), flush=True)


def _activate() -> str:
    """Return the line that makes `pilotlight` a command in another shell, or ""."""
    script = Path(sys.prefix) / "bin" / "activate"
    return f"  . {shlex.quote(str(script))}\n" if shutil.which("pilotlight") is None and script.exists() else ""


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text on one line, which "" clears."""
    if not on_terminal(stderr=True):
        yield lambda text: note(text) if text else None  # a log has no use for what is taken back
        return
    status = console(stderr=True).status("")

    def show(text: str) -> None:
        if text:
            status.update(text)
            status.start()
        else:
            status.stop()

    try:
        yield show
    finally:
        status.stop()


@contextmanager
def _passing_signals_to(child: subprocess.Popen[str], show: Callable[[str], None]) -> Iterator[None]:
    def passed_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        show("stopping …")
        child.send_signal(number)

    before = {number: signal.signal(number, passed_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_with_parent() -> None:
    """Have the kernel send the child SIGTERM when this process ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
