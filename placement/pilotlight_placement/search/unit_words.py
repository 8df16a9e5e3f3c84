"""Devices and slots in words: what they are, and what is taken of them."""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.asks.ask import CPU
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.catalogue import is_kind


def is_asked(unit: Unit, asked: str) -> bool:
    if unit.slot is not None and unit.slot.kind is SliceKind.CPU:
        return asked == CPU
    return asked != CPU and is_kind(asked, unit.group.kind.name)


def name_of(unit: Unit) -> str:
    if unit.slot is not None and unit.slot.kind is SliceKind.CPU:
        return "a CPU slot"
    return f"a part of a GPU ({unit.group.kind.name})" if unit.slot is not None else f"a GPU ({unit.group.kind.name})"


def state_of(unit: Unit) -> str:
    if unit.slot is not None:
        return "it is taken" if unit.held else "it is free"
    if unit.gpu is not None and unit.gpu.kept:
        return unit.gpu.kept
    if unit.gpu is not None and unit.gpu.mig:
        used = ", ".join(str(instance) for instance in unit.instances())
        return f"{used} are taken" if used else "all of it is free"
    if not unit.held:
        vacant = len(unit.node.vacant.get(unit.group, ()))
        return f"{vacant} of the node's {unit.group.kind.name} are free"
    if unit.free:
        whose = unit.tenant or "several tenants"
        return f"{unit.free} of 1000 parts are free on a device that {whose} share"
    return "it is taken"
