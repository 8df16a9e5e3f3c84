"""The policy: what rules a place out, and what decides between places. Lists in the order in which they are tried.

`FILTERS` are questions to one device (or slot), answered with a sentence that says why not. `STEPS` compare places that
pass: the first step in which two places differ decides. Deciding itself is in `place.py`; it follows these lists by
way of the index, and counts and explains in their words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pilotlight_core.model.messages.agent_messages import SliceKind
from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import CPU, GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.catalogue import is_kind
from pilotlight_placement.search.search import joins


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A hard rule. `refuses` says why a unit is out, or "" if it is not."""

    name: str
    sentence: str
    refuses: Callable[[Fleet, Unit, Ask], str]


@dataclass(frozen=True, kw_only=True)
class PolicyStep:
    """What decides between two places that are alike in all steps before it."""

    name: str
    sentence: str


STEPS = (
    PolicyStep(name="preference", sentence="The GPU type that stands first in the function's list goes first."),
    PolicyStep(name="spread", sentence="The node or zone with the fewest containers of the function goes first."),
    PolicyStep(name="resident", sentence="A node that has the weights already goes before one that must fetch them."),
    PolicyStep(name="cost", sentence="The slice with the lowest cost per throughput goes first; 5 % do not count."),
    PolicyStep(
        name="fragmentation", sentence="The place that strands least of what is typically asked for goes first."
    ),
    PolicyStep(name="fit", sentence="The device, or the node for whole devices, with least left free goes first."),
    PolicyStep(name="start", sentence="The highest start goes first, which keeps the lower half for large profiles."),
    PolicyStep(name="cut", sentence="A MIG instance that exists and is idle goes before one that must be made first."),
    PolicyStep(name="order", sentence="What is alike in all else is decided by a fixed order of nodes."),
)
STEP_NAMES = tuple(step.name for step in STEPS)


def _draining(_: Fleet, unit: Unit, __: Ask) -> str:
    return f"{unit.node.name} is draining and takes nothing new" if unit.node.node.draining else ""


def _health(_: Fleet, unit: Unit, __: Ask) -> str:
    return f"{unit.id} takes nothing new: {unit.gpu.withdrawn}" if unit.gpu and unit.gpu.withdrawn else ""


def _region(_: Fleet, unit: Unit, ask: Ask) -> str:
    region = unit.node.node.domain.region
    fits = not ask.regions or region in ask.regions
    return "" if fits else f"it is in the region {region}, not in {' or '.join(ask.regions)}"


def _zone(_: Fleet, unit: Unit, ask: Ask) -> str:
    zone = unit.node.node.domain.zone
    return "" if not ask.zones or zone in ask.zones else f"it is in the zone {zone}, not in {' or '.join(ask.zones)}"


def _purchase(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    bought = "spot" if unit.node.node.domain.spot else "on demand"
    return f"it is bought {bought}, the ask is for {ask.purchase.value}" if _is(fleet, unit, ask, "purchase") else ""


def _type(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    wanted = " or ".join("a CPU slot" if choice.type == CPU else choice.type for choice in ask.choices)
    return f"it is {name_of(unit)}, the ask is for {wanted}" if _is(fleet, unit, ask, "type") else ""


def _count(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    asked = ", ".join(str(choice) for choice in ask.choices)
    why = f"{asked} is several whole devices together, which a part of one cannot be"
    return why if _is(fleet, unit, ask, "count") else ""


def _vram(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    refused = fleet.refusal_of(ask, unit.cell)
    if refused is None or refused.filter != "vram":
        return ""
    if not ask.vram:
        return "nothing says how much memory is needed, so only a whole device holds it (declare vram=)"
    count = max(1, min(choice.count for choice in ask.choices if is_asked(unit, choice.type)))
    need, largest = ask.mib(count) / 1024, refused.largest / 1024
    return f"its largest slice has {largest:.1f} GiB, {need:.1f} GiB are needed: {need - largest:.1f} GiB are missing"


def _slo(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    why = f"no slice of it was ever within {ask.slo_ms} ms when it was measured"
    return why if _is(fleet, unit, ask, "slo") else ""


def _isolation(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    why = f"isolation={ask.isolation.value} excludes what it can be cut into"
    return why if _is(fleet, unit, ask, "isolation") else ""


def _slice(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    return f"it cannot be had as {ask.slice}, on which it is to be measured" if _is(fleet, unit, ask, "slice") else ""


def _host_memory(_: Fleet, unit: Unit, ask: Ask) -> str:
    has = unit.node.node.host_memory
    short = bool(has) and has < ask.memory
    return f"the host has {has / GIB:.1f} GiB of memory, {ask.memory / GIB:.1f} GiB are needed" if short else ""


def _avoid(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    there = [function for function in ask.avoid if fleet.nodes_of(function).get(unit.node.rank)]
    return f"{there[0]} runs on {unit.node.name}, which the function avoids" if there else ""


def _spread(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    if ask.spread is None or ask.spread.most is None:
        return ""
    if ask.spread.over is Over.NODE:
        there, where = fleet.nodes_of(ask.function).get(unit.node.rank, 0), unit.node.name
    else:
        domain = unit.node.node.domain
        there, where = fleet.zones(ask.function).get((domain.region, domain.zone), 0), f"the zone {domain.zone}"
    return f"{where} has {there} of its containers, {ask.spread.most} are the most" if there >= ask.spread.most else ""


def _room(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    if joins(unit, ask, fleet.offers_in(ask, unit.cell)):
        return ""
    return f"nothing that would do is free: {state_of(unit)}"


def _is(fleet: Fleet, unit: Unit, ask: Ask, name: str) -> bool:
    refused = fleet.refusal_of(ask, unit.cell)
    return refused is not None and refused.filter == name


FILTERS = (
    Filter(name="draining", sentence="The node takes containers.", refuses=_draining),
    Filter(name="health", sentence="The device is well, and nothing is being changed on it.", refuses=_health),
    Filter(name="region", sentence="It is in a region that is asked for.", refuses=_region),
    Filter(name="zone", sentence="It is in a zone that is asked for.", refuses=_zone),
    Filter(name="purchase", sentence="It is bought as is asked for, spot or on demand.", refuses=_purchase),
    Filter(name="type", sentence="It is of a type that is asked for.", refuses=_type),
    Filter(name="count", sentence="Several devices for one container are whole ones of one node.", refuses=_count),
    Filter(name="vram", sentence="It has a slice with the device memory that is needed.", refuses=_vram),
    Filter(
        name="isolation", sentence="It is shared with nobody whom the isolation class excludes.", refuses=_isolation
    ),
    Filter(name="slice", sentence="It can be had as the kind of slice that is being measured.", refuses=_slice),
    Filter(name="slo", sentence="What was measured on it keeps the service level.", refuses=_slo),
    Filter(name="host_memory", sentence="Its host has the memory that the container may use.", refuses=_host_memory),
    Filter(name="avoid", sentence="No function that is to be avoided runs on its node.", refuses=_avoid),
    Filter(name="spread", sentence="Its node or zone has not as many of the function's already.", refuses=_spread),
    Filter(name="room", sentence="A slice that would do is free.", refuses=_room),
)
FILTER_NAMES = tuple(item.name for item in FILTERS)
RULED_OUT = {
    "draining": "on nodes that are draining",
    "health": "that take nothing new",
    "region": "in other regions",
    "zone": "in other zones",
    "purchase": "bought the other way (spot or on demand)",
    "type": "of other types",
    "count": "that are given one at a time",
    "vram": "with too little device memory",
    "isolation": "excluded by the isolation class",
    "slice": "that cannot be had as the slice that is being measured",
    "slo": "too slow for the service level",
    "host_memory": "on hosts with too little memory",
    "avoid": "on nodes with functions to avoid",
    "spread": "where there are as many of its containers as may be",
    "room": "in use",
}
"""What is said of the devices that each filter ruled out."""


def refusal_at(fleet: Fleet, unit: Unit, ask: Ask) -> tuple[Filter, str] | None:
    """The first filter that rules a unit out, and why; None if none does."""
    for item in FILTERS:
        if why := item.refuses(fleet, unit, ask):
            return item, why
    return None


def is_asked(unit: Unit, asked: str) -> bool:
    """Whether a unit is of a type that is asked for."""
    if unit.slot is not None and unit.slot.kind is SliceKind.CPU:
        return asked == CPU
    return asked != CPU and is_kind(asked, unit.cell.kind.name)


def name_of(unit: Unit) -> str:
    """What a unit is, in words."""
    if unit.slot is not None and unit.slot.kind is SliceKind.CPU:
        return "a CPU slot"
    return f"a part of a GPU ({unit.cell.kind.name})" if unit.slot is not None else f"a GPU ({unit.cell.kind.name})"


def state_of(unit: Unit) -> str:
    """What of a unit is taken, in words."""
    if unit.slot is not None:
        return "it is taken" if unit.held else "it is free"
    if unit.gpu is not None and unit.gpu.kept:
        return unit.gpu.kept
    if unit.gpu is not None and unit.gpu.mig:
        used = ", ".join(str(instance) for instance in unit.instances())
        return f"{used} are taken" if used else "all of it is free"
    if not unit.held:
        vacant = len(unit.node.vacant.get(unit.cell, ()))
        return f"{vacant} of the node's {unit.cell.kind.name} are free"
    if unit.free:
        whose = unit.tenant or "several tenants"
        return f"{unit.free} of 64 parts are free on a device that {whose} share"
    return "it is taken"
