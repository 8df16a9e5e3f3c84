"""`pilotlight plan`."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note
from pilotlight.cli.platform_commands import run_command
from pilotlight.cli.session import ask, client
from pilotlight.definitions.errors import BadInput, NotFound
from pilotlight_core.model.api.curve_api import CPU_TYPE, Curve, CurvePoint, CurveSource

app = command_app()
TRUST = (CurveSource.MEASURED, CurveSource.LEARNT, CurveSource.DECLARED)


@app.command()
def plan(
    demand: Annotated[Path, typer.Option(help="CSV: function, rps, slo_ms, and what was measured")],
    curves: Annotated[Path | None, typer.Option(help="CSV: more that was measured")] = None,
    prices: Annotated[Path | None, typer.Option(help="CSV: gpu, price (dollars per hour)")] = None,
    price_file: Annotated[Path | None, typer.Option(help="TOML: the price file of a gateway")] = None,
    utilisation: Annotated[str | None, typer.Option(help="planned part of throughput; default 70%")] = None,
    slo_part: Annotated[str | None, typer.Option(help="part of slo_ms that one batch may take; default 50%")] = None,
    solver: Annotated[str | None, typer.Option(help="auto, greedy or ilp")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="time for the integer program; default 10", min=0.1, max=86_400.0)
    ] = None,
    known: Annotated[
        bool,
        typer.Option(
            "--known", help="what the platform knows of functions without points in these files, and its prices"
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Plan GPUs for a demand: how many, of which type, at what cost.

    \b
    pilotlight plan --demand demand.csv
    pilotlight plan --demand demand.csv --prices prices.csv --json
    pilotlight plan --demand demand.csv --known          (curves measured by pilotlight profile, or learnt in use)
    pilotlight plan --demand demand.csv --price-file /etc/pilotlight/prices.toml
    """
    named = {
        "--demand": demand,
        "--curves": curves,
        "--prices": prices,
        "--price-file": price_file,
        "--utilisation": utilisation,
        "--slo-part": slo_part,
        "--solver": solver,
        "--seconds": seconds,
    }
    # A process of its own: what tenants import knows nothing of placement.
    flags = [f"{flag}={value}" for flag, value in named.items() if value is not None] + ["--json"] * as_json
    with tempfile.TemporaryDirectory(prefix="pilotlight-plan-") as folder:
        if known:
            table = Path(folder) / "known.csv"
            write_known(table, unmeasured([demand, *([curves] if curves else [])]))
            flags.append(f"--curves={table}")
            if price_file is None:
                flags.append(f"--price-file={write_prices(Path(folder) / 'prices.toml')}")
        raise typer.Exit(run_command("plan", flags, as_json=as_json))


def write_prices(path: Path) -> Path:
    """Write the platform's present prices as a price file."""
    told = ask(client().platform.list_prices())
    rates = {price.price: int(Decimal(price.usd_per_hour) * 10**9) for price in told.prices}
    lines = [
        f"[prices.{msgspec.json.encode(name).decode()}]\nnano_usd_per_hour = {rate}\n" for name, rate in rates.items()
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def unmeasured(tables: Sequence[Path]) -> list[str]:
    """Return the functions without a point in any table. Unreadable tables are left to the planner."""
    functions: dict[str, bool] = {}
    for path in tables:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        for row in csv.DictReader(text.splitlines(), skipinitialspace=True):
            name = (row.get("function") or "").strip()
            functions[name] = functions.get(name, False) or bool((row.get("batch") or "").strip())
    return [name for name, has_points in functions.items() if name and not has_points and not name.startswith("#")]


def write_known(path: Path, functions: Sequence[str]) -> None:
    """Write the platform's curves of some functions as a table, and note those without."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("function", "gpu", "slice", "batch", "latency_ms", "throughput"))
        for function in functions:
            try:
                found = ask(client().platform.get_curves(function))
            except (NotFound, BadInput) as error:
                note(f"{function}: {error.detail}")
                continue
            points = best_points(found.curves)
            if not points:
                note(f"{function}: {_unknown(found.curves)} (pilotlight profile {function})")
            for (gpu, cut, batch), point in points.items():
                table.writerow((function, gpu, cut, batch, point.p95_ms, point.throughput))


def _unknown(curves: Sequence[Curve]) -> str:
    """Return why none of these curves counts."""
    if any(curve.software for curve in curves):
        return "it was measured on GPUs in software only, which say nothing of real ones: profile it on a real one"
    return "the platform knows of no GPU that it was measured on"


def best_points(curves: Sequence[Curve]) -> dict[tuple[str, str, int], CurvePoint]:
    """Return the most trustworthy point by (GPU, slice, batch size), of slices for sale."""
    points: dict[tuple[str, str, int], CurvePoint] = {}
    for curve in sorted(curves, key=lambda curve: TRUST.index(curve.source)):
        if curve.software or curve.gpu == CPU_TYPE or curve.slice.startswith("share:"):
            continue
        for point in curve.points:
            points.setdefault((curve.gpu, curve.slice, point.batch), point)
    return points
