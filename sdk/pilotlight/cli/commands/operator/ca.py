"""`pilotlight ca`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import run_command

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """A certificate authority of your own, for TLS between hosts."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="folder of the authority's files")] = Path("ca"),
    name: Annotated[str | None, typer.Option(help="the authority's name; default: Pilotlight CA")] = None,
    days: Annotated[int | None, typer.Option(help="how long it is valid; default 3650")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Make an authority in a folder.

    Everybody is given its ca.pem, and nobody its ca.key.

    \b
    pilotlight ca init
    pilotlight ca init ~/pilotlight-ca --days 1825
    """
    named = {"--name": name, "--days": days}
    words = [f"{flag}={value}" for flag, value in named.items() if value is not None] + ["--json"] * as_json
    raise typer.Exit(run_command("ca", ["init", *words, "--", str(folder)], as_json=as_json))


@app.command()
def issue(
    name: Annotated[str, typer.Argument(help="of the certificate's holder, and of its files")],
    ca: Annotated[Path, typer.Option(help="folder of the authority")] = Path("ca"),
    host: Annotated[list[str] | None, typer.Option(help="a name by which it is reached; may be repeated")] = None,
    ip: Annotated[list[str] | None, typer.Option(help="an address by which it is reached; may be repeated")] = None,
    server: Annotated[bool, typer.Option("--server", help="it proves a server (the default)")] = False,
    client: Annotated[bool, typer.Option("--client", help="it proves a client")] = False,
    days: Annotated[int | None, typer.Option(help="how long it is valid; default 365")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="renew: a new key and certificate in their place")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Issue a certificate and its key.

    They are NAME.pem and NAME.key beside the authority, and never overwrite others, but with --replace: then names and
    uses are those of the old certificate, unless others are given.

    \b
    pilotlight ca issue gw-1 --host gw-1.example.com --ip 10.0.0.5
    pilotlight ca issue bus-1 --host bus-1.example.com --server --client     # a server of a cluster is both
    pilotlight ca issue reports --client --days 30
    pilotlight ca issue gw-1 --replace                                       # gateways read the new one by themselves
    """
    words = [f"--ca={ca}", *(f"--host={each}" for each in host or ()), *(f"--ip={each}" for each in ip or ())]
    words += ["--server"] * server + ["--client"] * client + ["--replace"] * replace + ["--json"] * as_json
    words += [f"--days={days}"] * (days is not None)
    raise typer.Exit(run_command("ca", ["issue", *words, "--", name], as_json=as_json))
