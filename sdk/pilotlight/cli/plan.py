"""`pilotlight plan`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.commands import command_app

app = command_app()
MODULE = "pilotlight_placement.planner_command"


@app.command()
def plan(
    demand: Annotated[Path, typer.Option(help="CSV: function, rps, slo_ms, and what was measured")],
    curves: Annotated[Path | None, typer.Option(help="CSV: more that was measured")] = None,
    prices: Annotated[Path | None, typer.Option(help="CSV: gpu, price (dollars per hour)")] = None,
    utilisation: Annotated[str | None, typer.Option(help="planned part of throughput; default 70%")] = None,
    slo_part: Annotated[str | None, typer.Option(help="part of slo_ms that one batch may take; default 50%")] = None,
    solver: Annotated[str | None, typer.Option(help="auto, greedy or ilp")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say how many GPUs of which type a demand needs, and what they cost.

    \b
    pilotlight plan --demand demand.csv
    pilotlight plan --demand demand.csv --prices prices.csv --json
    """
    named = {
        "--demand": demand,
        "--curves": curves,
        "--prices": prices,
        "--utilisation": utilisation,
        "--slo-part": slo_part,
        "--solver": solver,
    }
    # A process of its own: what tenants import knows nothing of placement.
    flags = [f"{flag}={value}" for flag, value in named.items() if value is not None] + ["--json"] * as_json
    raise typer.Exit(subprocess.run([sys.executable, "-m", MODULE, *flags], check=False).returncode)
