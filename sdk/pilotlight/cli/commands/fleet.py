"""`pilotlight fleet`: a row for each GPU, with its slices, their tenants, free and stranded room."""

from __future__ import annotations

import time
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any
from zlib import crc32

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import console, note, on_terminal, print_json
from pilotlight.cli.printable import printable_line
from pilotlight.cli.session import ask, client

if TYPE_CHECKING:
    from rich.text import Text

app = command_app()
COLUMNS = 32
"""Columns of a device's bar: four per memory slice of a MIG GPU."""
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta", "bright_yellow")
"""Of tenants. Red is for devices that take nothing."""
FILL = {"used": "█", "free": "·", "stranded": "x"}
PLAIN = {"used": "#", "free": ".", "stranded": "x"}
SLOTS = "CPU"
GIB = 2**30
WORDS = (("in software", "software"), ("MIG", "mig"), ("spot", "spot"), ("draining", "draining"))


@app.command()
def fleet(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    all_slots: Annotated[bool, typer.Option("--slots", help="a row for each CPU slot, too")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="draw it again and again until Ctrl-C")] = False,
    every: Annotated[float, typer.Option(help="seconds between drawings with --watch", min=0.1)] = 2.0,
) -> None:
    """Draw the fleet. Each GPU is a row, with its slices in their tenants' colours.

    \b
    pilotlight fleet
    pilotlight fleet --json
    pilotlight fleet --watch
    """
    _draw(as_json=as_json, all_slots=all_slots, watched=watch)
    while watch:
        time.sleep(every)
        _draw(as_json=as_json, all_slots=all_slots, watched=True)


def _draw(*, as_json: bool, all_slots: bool, watched: bool) -> None:
    found = ask(client().platform.get_fleet())
    if as_json:
        print_json(found, indent=not watched)
        return
    if watched and on_terminal():
        console().clear()
    devices = found["devices"]
    if not devices:
        note("No node has reported.")
        return
    shown = [row for row in devices if all_slots or row["type"] != SLOTS]
    widths = [max((len(row[key]) for row in shown), default=0) for key in ("node", "id", "type")]
    screen = console()
    screen.width = max(screen.width, 1_000)
    for node, rows in groupby(devices, key=lambda row: row["node"]):
        for row in rows:
            if row in shown:
                screen.print(line(row, widths, colours=on_terminal()))
        slots = [row for row in devices if row["node"] == node and row["type"] == SLOTS]
        if slots and not all_slots:
            used = sum(part["use"] == "used" for row in slots for part in row["segments"])
            screen.print(f"{node}  {len(slots)} CPU slots, {used} used")
    for host in found.get("hosts", ()):
        screen.print(host_line(host))
    for text in legend(found, colours=on_terminal()):
        screen.print(text)


def host_line(host: dict[str, Any]) -> str:
    """Return what a node's containers are promised of its host."""
    memory, promised = host["memory"] / GIB, host["memory_promised"] / GIB
    return (
        f"{host['node']}  {promised:.1f} of {memory:.1f} GiB of host memory promised, "
        f"{host['cores_promised']:g} of {host['cores']:g} cores"
    )


def line(row: dict[str, Any], widths: list[int], *, colours: bool) -> Text:
    """Draw a device: its place, bar, containers, and trouble."""
    from rich.text import Text

    head = "  ".join(str(row[key]).ljust(width) for key, width in zip(("node", "id", "type"), widths, strict=True))
    drawn = Text(f"{printable_line(head)}  [")
    done = 0
    for part in row["segments"]:
        begun, done = done, done + part["width"]
        cells = done * COLUMNS // row["width"] - begun * COLUMNS // row["width"]
        drawn.append(bar(part, cells, colours=colours), style=colour_of(part, row) if colours else "")
    drawn.append("]")
    for word, key in WORDS:
        if row[key]:
            drawn.append(f" {word}")
    if row["withdrawn"]:
        drawn.append(printable_line(f" takes nothing new: {row['withdrawn']}"), style="red" if colours else "")
    names = [f"{part['container']} ({part['tenant'] or '?'})" for part in row["segments"] if part["use"] == "used"]
    drawn.append(printable_line(f"  {', '.join(names)}") if names else "")
    return drawn


def bar(part: dict[str, Any], cells: int, *, colours: bool) -> str:
    """Draw a segment in `cells` columns: its label, then its fill."""
    fill = (FILL if colours else PLAIN)[part["use"]]
    label = printable_line(part["label"])[: max(0, cells - 1)] if part["use"] == "used" else ""
    return label.ljust(cells, fill)


def colour_of(part: dict[str, Any], row: dict[str, Any]) -> str:
    """Return a tenant's colour; for free room red if the device takes nothing, else dim."""
    if part["use"] == "used":
        return tenant_colour(part["tenant"])
    if row["withdrawn"] or row["draining"]:
        return "red"
    return "dim red" if part["use"] == "stranded" else "dim"


def tenant_colour(tenant: str) -> str:
    """Return a tenant's colour, the same in every drawing."""
    return COLOURS[crc32(tenant.encode()) % len(COLOURS)]


def legend(found: dict[str, Any], *, colours: bool) -> list[Text]:
    """Return lines with the used, free and stranded room by type, and the tenant of each colour."""
    from rich.text import Text

    lines = [Text("")]
    for name, parts in found["totals"].items():
        if name == SLOTS:
            continue
        shares = [f"{parts[use]:.4g} {word}" for use, word in TOTALS if parts[use] or use != "out"]
        lines.append(Text(f"{printable_line(name)}: {parts['devices']:.0f} GPUs, of which {', '.join(shares)}"))
    tenants = sorted(
        {part["tenant"] for row in found["devices"] for part in row["segments"] if part["use"] == "used"} - {""}
    )
    if tenants and colours:
        names = Text("tenants: ")
        for tenant in tenants:
            names.append(f"{FILL['used']} {printable_line(tenant)}  ", style=tenant_colour(tenant))
        lines.append(names)
    fills = FILL if colours else PLAIN
    lines.append(
        Text(f"{fills['used']} used  {fills['free']} free  {fills['stranded']} stranded: free, but no instance fits")
    )
    return lines


TOTALS = (("used", "are used"), ("free", "free"), ("stranded", "stranded"), ("out", "out of service"))
