"""`pilotlight simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.platform_commands import run_command

app = command_app()


@app.command()
def simulate(
    fleet: Annotated[list[str], typer.Option(help="H100-80GB:8, A100-80GB:16:mig, CPU:64, or a plan's JSON file")],
    trace: Annotated[Path | None, typer.Option(help="CSV: function,at_s,duration_s or function,minute,count")] = None,
    generate: Annotated[
        list[str] | None, typer.Option(help="PATTERN[=PART]: diurnal, bursty, periodic, dying, reborn")
    ] = None,
    count: Annotated[int | None, typer.Option(help="functions to generate; default 100")] = None,
    rate: Annotated[float | None, typer.Option(help="their calls per second, together; default 10")] = None,
    hours: Annotated[float | None, typer.Option(help="hours to simulate; default the trace's, or 24")] = None,
    seed: Annotated[int | None, typer.Option(help="of all that is drawn; default 0")] = None,
    functions: Annotated[Path | None, typer.Option(help="CSV: function, and what it needs and takes")] = None,
    gpu: Annotated[str | None, typer.Option(help="of functions that name none: H100, H100|A100, CPU")] = None,
    load_s: Annotated[float | None, typer.Option(help="seconds that a start takes; default 30")] = None,
    duration_s: Annotated[float | None, typer.Option(help="of a call that is only counted; default 1")] = None,
    window_s: Annotated[float | None, typer.Option(help="scaledown_window; default 60")] = None,
    zero_window_s: Annotated[float | None, typer.Option(help="of the last container; default window_s")] = None,
    timeout_s: Annotated[float | None, typer.Option(help="how long a call waits at most; default 300")] = None,
    slots: Annotated[int | None, typer.Option(help="calls that a container holds at once; default 1")] = None,
    min_containers: Annotated[int | None, typer.Option(help="default 0")] = None,
    max_containers: Annotated[int | None, typer.Option(help="default 10")] = None,
    buffer_containers: Annotated[int | None, typer.Option(help="default 0")] = None,
    vram_gib: Annotated[float | None, typer.Option(help="GPU memory; default: a whole GPU")] = None,
    prices: Annotated[Path | None, typer.Option(help="CSV: gpu, price (dollars per hour)")] = None,
    price_file: Annotated[Path | None, typer.Option(help="TOML: the price file of a gateway")] = None,
    constant: Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE: a constant of the policy")] = None,
    vary: Annotated[str | None, typer.Option(help="NAME=V1,V2,...: simulate each, and compare")] = None,
    plot: Annotated[Path | None, typer.Option(help="folder for pictures (pilotlight[plots])")] = None,
    html: Annotated[Path | None, typer.Option(help="file for a page with table and pictures")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Simulate traffic on a fleet, in virtual time.

    \b
    pilotlight simulate --trace calls.csv --fleet A100-80GB:4 --load-s 20
    pilotlight simulate --trace calls.csv --fleet A100-80GB:4 --vary window_s=0,60,300 --html result.html
    pilotlight simulate --generate diurnal --generate bursty --count 50 --rate 5 --fleet H100-80GB:64
    """
    named = {
        "--trace": trace, "--count": count, "--rate": rate, "--hours": hours, "--seed": seed, "--functions": functions,
        "--gpu": gpu, "--load-s": load_s, "--duration-s": duration_s, "--window-s": window_s,
        "--zero-window-s": zero_window_s, "--timeout-s": timeout_s, "--slots": slots,
        "--min-containers": min_containers, "--max-containers": max_containers,
        "--buffer-containers": buffer_containers, "--vram-gib": vram_gib, "--prices": prices,
        "--price-file": price_file, "--vary": vary, "--plot": plot, "--html": html,
    }  # fmt: skip
    several = {"--fleet": fleet, "--generate": generate or (), "--set": constant or ()}
    words = [f"{flag}={value}" for flag, value in named.items() if value is not None] + ["--json"] * as_json
    words += [f"{flag}={value}" for flag, values in several.items() for value in values]
    # A process of its own: what tenants import knows nothing of the controller.
    raise typer.Exit(run_command("simulate", words, as_json=as_json))
