"""`pilotlight doctor`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import run_command

app = command_app()


class DoctorRole(StrEnum):
    """What the host is to be."""

    NODE = "node"
    GATEWAY = "gateway"
    BUS = "bus"


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def doctor(
    context: typer.Context,
    role: Annotated[DoctorRole, typer.Option("--for", help="what this host is to be")] = DoctorRole.NODE,
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Check whether this machine can be a node, a gateway or a bus.

    Each line is ok, warn or fail; below what is not ok, what was expected and what to do. It needs no platform; with
    addresses it also tries to reach them. It ends with 1 if the host cannot be what it was checked for.
    `pilotlight doctor -- --help` lists more options.

    \b
    sudo pilotlight doctor
    sudo pilotlight doctor --url https://gw-1.example.com:8470 --nats-url tls://bus-1.example.com --ca-file ca.pem
    pilotlight doctor --for gateway --state-dir /var/lib/pilotlight --ledger-url postgresql://db/pilotlight
    pilotlight doctor --for bus --json
    """
    if {"--help", "-h"} & set(context.args):
        raise typer.Exit(run_command("doctor", context.args))
    words = [f"--for={role}", *["--json"] * as_json, *context.args]
    raise typer.Exit(run_command("doctor", words, as_json=as_json))
