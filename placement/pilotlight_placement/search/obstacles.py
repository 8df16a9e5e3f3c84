"""What stands against an ask that a fleet can never hold, in plain words, and what there is instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotlight_core.model.messages.agent_messages import SliceKind
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.suggestions import nearest
from pilotlight_placement.asks.ask import CPU, GIB, Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.catalogue import is_kind, standard

NAMED = 12
"""Regions or zones that are named to whoever asked for another one."""
PURCHASES = {Purchase.SPOT: "not on spot nodes", Purchase.ON_DEMAND: "on spot nodes"}
"""What is said of the devices that are out, by what is asked for."""


def unknown_types(fleet: Fleet, ask: Ask) -> Iterator[str]:
    """A sentence for each type that is asked for and that is neither in the catalogue nor in the fleet."""
    names = {*standard().devices, *(cell.kind.name for cell in fleet.cells.values())} - {CPU}
    for choice in ask.choices:
        if choice.type == CPU or any(is_kind(choice.type, name) for name in names):
            continue
        meant = _meant(choice.type, names)
        hint = f": did you mean {meant}?" if meant else ""
        part = " (vram= gets a part of one)" if "MIG" in choice.type.split("-") else ""
        yield f"there is no GPU type {choice.type} in the catalogue{hint}{part}"


def _meant(word: str, names: Iterable[str]) -> str | None:
    short = sorted({name.partition("-")[0] for name in names})
    head = word.partition("-")[0]
    return head if head in short else nearest(word, [*short, *sorted(names)])


def other_locations(fleet: Fleet, ask: Ask) -> Iterator[str]:
    """What is out by where it is or how it was bought: devices of the types asked for, where there are any."""
    cells = [cell for cell in fleet.cells.values() if cell.total]
    for what, asked, of in (
        ("region", ask.regions, [cell.domain.region for cell in cells]),
        ("zone", ask.zones, [cell.domain.zone for cell in cells]),
    ):
        if asked and not set(of) & set(asked):
            yield _no_such(what, asked, set(of) - {""})
        elif asked and (out := _wanted((cell for cell, name in zip(cells, of, strict=True) if name not in asked), ask)):
            yield f"{out} in other {what}s"
    if ask.purchase is not Purchase.ANY:
        spot = ask.purchase is Purchase.SPOT
        if out := _wanted((cell for cell in cells if cell.domain.spot is not spot), ask):
            yield f"{out} {PURCHASES[ask.purchase]}"


def host_memory(fleet: Fleet, ask: Ask) -> str:
    """How much the nodes have that have what is asked for; "" where that is enough."""
    hosts = [
        place.node.host_memory
        for place in fleet.places.values()
        if not place.node.draining and any(unit.cell in fleet.offers(ask).by_cell for unit in place.units)
    ]
    if not hosts or 0 in hosts or (most := max(hosts)) >= ask.memory:
        return ""
    return f"no node with such a device or slot has more than {most / GIB:.1f} GiB of host memory"


def _no_such(what: str, asked: Iterable[str], there: set[str]) -> str:
    names = sorted(there)
    shown = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    only = f"there is {shown}" if names else f"no node names its {what}"
    return f"there is no {what} {' or '.join(asked)}; {only}"


def _wanted(cells: Iterable[DeviceGroup], ask: Ask) -> int:
    """How many devices and slots of some cells are of a type that is asked for."""
    return sum(cell.total for cell in cells if any(_is_kind(choice.type, cell) for choice in ask.choices))


def _is_kind(asked: str, cell: DeviceGroup) -> bool:
    if cell.slot is not None and cell.slot.kind is SliceKind.CPU:
        return asked == CPU
    return asked != CPU and is_kind(asked, cell.kind.name)
