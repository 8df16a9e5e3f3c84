"""`pilotlight up`."""

from __future__ import annotations

import ctypes
import os
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
from pilotlight.cli.output import console, note, on_terminal, print_json, print_text
from pilotlight.cli.platform_commands import child_error, command_line, run_command
from pilotlight.client.transport.config import CLIENT_FILE, home

app = command_app()
ANNOUNCEMENT = "Pilotlight is up"
"""The start of the platform's line when it is ready, which is replaced."""
DASHBOARD = "The dashboard: "
"""The start of the line with the link into it, which follows once it answers."""
PR_SET_PDEATHSIG = 1
SHOWN = ("url", "urls", "state_dir", "api_key_file", "dashboard_url")
"""What `--json` says of the platform."""
NEXT = """
Next, in another terminal:
{activate}{home}  pilotlight deploy examples/hello/app.py
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
    json_ready: Annotated[
        Path | None,
        typer.Option(
            envvar="PILOTLIGHT_JSON_READY",
            show_envvar=False,
            help="file to write when it is up: url, pids, metrics_by_process and more",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print a line of JSON when it is up")] = False,
) -> None:
    """Run the platform on this machine until Ctrl-C.

    `pilotlight up -- --help` lists more options.

    \b
    pilotlight up
    pilotlight up --port 8470 --cpu-slots 4
    pilotlight up --fake-gpus "2xH100:mig,1xT4"          (GPUs in software)
    """
    if {"--help", "-h"} & set(context.args):
        raise typer.Exit(run_command("up", context.args))
    named = {
        "--port": port,
        "--state-dir": state_dir,
        "--cpu-slots": cpu_slots,
        "--blanks": blanks,
        "--sandbox": sandbox,
    }
    flags = [word for flag, value in named.items() if value is not None for word in (flag, str(value))]
    command = [*command_line("up"), *flags, *context.args]
    raise typer.Exit(supervise(command, json_ready=json_ready, as_json=as_json))


def supervise(command: list[str], *, json_ready: Path | None = None, as_json: bool = False) -> int:
    """Run the platform as a child, announce it, and pass signals on; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="pilotlight-up-") as folder:
        ready = json_ready or Path(folder) / "ready.json"
        # A session of its own: the terminal's Ctrl-C reaches the child once, through us, and it ends in its order.
        child = subprocess.Popen(
            [*command, "--json-ready", str(ready)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if as_json else None,
            text=True,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        last, was_up = "", False
        with child, _status() as show, _passing_signals_to(child, show):
            show("starting nats, gateway, controller, duties, agent, dashboard …")
            for line in child.stdout or ():
                if line.startswith(ANNOUNCEMENT) and ready.exists():
                    show("")
                    _welcome(ready, as_json=as_json)
                    was_up = True
                elif was_up and line.startswith(DASHBOARD) and not as_json:
                    print_text(line.rstrip())
                else:
                    note(line.rstrip())
                    last = line
    if as_json and child.returncode and not was_up:
        print_json(child_error(last), indent=False)
    return child.returncode


def _welcome(ready: Path, *, as_json: bool) -> None:
    found = msgspec.json.decode(ready.read_bytes())
    if as_json:  # the rest is for tests: where the bus is, with its password, and pids, which change
        print_json({name: found.get(name) for name in SHOWN}, indent=False)
        return
    print_text(f"Pilotlight is up at {found['url']} (state in {found['state_dir']}, key in {found['api_key_file']}).")
    print_text(NEXT.format(activate=_activate(), home=_home_line(Path(found["api_key_file"]))))


def _home_line(client_file: Path) -> str:
    """Return the line without which a shell would speak to another platform, or ""."""
    elsewhere = client_file != (home(os.environ) / CLIENT_FILE).resolve() and client_file.name == CLIENT_FILE
    return f"  export PILOTLIGHT_HOME={shlex.quote(str(client_file.parent))}\n" if elsewhere else ""


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
