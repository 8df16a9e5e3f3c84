"""The filters that exclude devices, in the order of application.

A filter of `FILTERS` refuses one device (or slot) with a sentence; `refusal_at` is the first that does. Searches know
the same rules by the index, and tests check that both agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pilotlight_core.model.placing import Over
from pilotlight_core.model.versions.manifest_codec import SANDBOX_LIMITS
from pilotlight_placement.asks.ask import CPU, MIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.search.candidate import has_room
from pilotlight_placement.search.short_hosts import cpu_refusal, memory_refusal
from pilotlight_placement.search.unit_words import is_asked, name_of, state_of


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A hard rule. `refuses` says why a unit is excluded, or ""; `ruled_out` completes "12 devices …"."""

    name: str
    sentence: str
    ruled_out: str
    refuses: Callable[[Fleet, Unit, Ask], str]


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


def _base(_: Fleet, unit: Unit, ask: Ask) -> str:
    node = unit.node
    there = node.node.domain.abilities.bases
    fits = not ask.base or ask.base in there
    return "" if fits else f"{node.name} has the base environments {', '.join(there)}, not {ask.base}"


def _feature(_: Fleet, unit: Unit, ask: Ask) -> str:
    lacking = sorted(set(ask.needs) - set(unit.node.node.domain.abilities.features))
    if lacking == [SANDBOX_LIMITS]:
        return f"{unit.node.name} cannot do {SANDBOX_LIMITS}: its agent is older, or its sandbox holds no such limits"
    return f"the agent of {unit.node.name} is older and cannot do {', '.join(lacking)}" if lacking else ""


def _shm(_: Fleet, unit: Unit, ask: Ask) -> str:
    most = unit.node.node.domain.abilities.shm
    return f"{unit.node.name} allows {most // MIB} MiB of /dev/shm at most" if ask.shm > most else ""


def _scratch(_: Fleet, unit: Unit, ask: Ask) -> str:
    most = unit.node.node.domain.abilities.scratch
    return f"{unit.node.name} allows {most // MIB} MiB of /tmp at most" if ask.scratch > most else ""


def _pids(_: Fleet, unit: Unit, ask: Ask) -> str:
    most = unit.node.node.domain.abilities.pids
    return f"{unit.node.name} allows {most} processes and threads at most" if ask.pids > most else ""


def _type(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    wanted = " or ".join("a CPU slot" if choice.type == CPU else choice.type for choice in ask.choices)
    return f"it is {name_of(unit)}, the ask is for {wanted}" if _is(fleet, unit, ask, "type") else ""


def _count(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    asked = ", ".join(str(choice) for choice in ask.choices)
    why = f"{asked} is several whole devices together, which a part of one cannot be"
    return why if _is(fleet, unit, ask, "count") else ""


def _vram(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    refused = fleet.refusal_of(ask, unit.group)
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


def _memory(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    return memory_refusal(fleet, unit.node.rank, ask)


def _cpu(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    return cpu_refusal(fleet, unit.node.rank, ask)


def _avoid(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    there = [function for function in ask.avoid if fleet.nodes_of(function).get(unit.node.rank)]
    if there:
        return f"{there[0]} runs on {unit.node.name}, which the function avoids"
    avoids = fleet.nodes_avoiding(ask.function).get(unit.node.rank)
    return f"what runs on {unit.node.name} avoids the function" if avoids else ""


def _spread(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    if ask.spread is None or ask.spread.most is None:
        return ""
    there, node = crowding(fleet, ask, unit.node), unit.node
    where = node.name if ask.spread.over is Over.NODE else f"the zone {node.node.domain.zone}"
    return f"{where} has {there} of its containers, {ask.spread.most} are the most" if there >= ask.spread.most else ""


def _room(fleet: Fleet, unit: Unit, ask: Ask) -> str:
    if has_room(unit, ask, fleet.offers_in(ask, unit.group)):
        return ""
    return f"nothing that would do is free: {state_of(unit)}"


def _is(fleet: Fleet, unit: Unit, ask: Ask, name: str) -> bool:
    refused = fleet.refusal_of(ask, unit.group)
    return refused is not None and refused.filter == name


FILTERS = (
    Filter(
        name="draining",
        sentence="The node takes containers.",
        ruled_out="on nodes that are draining",
        refuses=_draining,
    ),
    Filter(
        name="health",
        sentence="The device is well, and nothing is being changed on it.",
        ruled_out="that take nothing new",
        refuses=_health,
    ),
    Filter(
        name="region",
        sentence="It is in a region that is asked for.",
        ruled_out="in other regions",
        refuses=_region,
    ),
    Filter(
        name="zone",
        sentence="It is in a zone that is asked for.",
        ruled_out="in other zones",
        refuses=_zone,
    ),
    Filter(
        name="purchase",
        sentence="It is bought as is asked for, spot or on demand.",
        ruled_out="bought the other way (spot or on demand)",
        refuses=_purchase,
    ),
    Filter(
        name="base",
        sentence="Its node has the base environment that is asked for.",
        ruled_out="on nodes without its base environment",
        refuses=_base,
    ),
    Filter(
        name="feature",
        sentence="Its node's agent can do what the function needs.",
        ruled_out="on nodes whose agent lacks a feature",
        refuses=_feature,
    ),
    Filter(
        name="shm",
        sentence="Its node allows so much of /dev/shm.",
        ruled_out="on nodes that allow less of /dev/shm",
        refuses=_shm,
    ),
    Filter(
        name="scratch",
        sentence="Its node allows so much of /tmp.",
        ruled_out="on nodes that allow less of /tmp",
        refuses=_scratch,
    ),
    Filter(
        name="pids",
        sentence="Its node allows so many processes and threads.",
        ruled_out="on nodes that allow fewer processes and threads",
        refuses=_pids,
    ),
    Filter(
        name="type",
        sentence="It is of a type that is asked for.",
        ruled_out="of other types",
        refuses=_type,
    ),
    Filter(
        name="count",
        sentence="Several devices for one container are whole ones of one node.",
        ruled_out="that are given one at a time",
        refuses=_count,
    ),
    Filter(
        name="vram",
        sentence="It has a slice with the device memory that is needed.",
        ruled_out="with too little device memory",
        refuses=_vram,
    ),
    Filter(
        name="isolation",
        sentence="It is shared with no container that the isolation class excludes.",
        ruled_out="excluded by the isolation class",
        refuses=_isolation,
    ),
    Filter(
        name="slice",
        sentence="It can be had as the kind of slice that is being measured.",
        ruled_out="that cannot be had as the slice that is being measured",
        refuses=_slice,
    ),
    Filter(
        name="slo",
        sentence="What was measured on it keeps the service level.",
        ruled_out="too slow for the service level",
        refuses=_slo,
    ),
    Filter(
        name="memory",
        sentence="Its host has memory left that can be promised to the container.",
        ruled_out="on hosts with too little memory left",
        refuses=_memory,
    ),
    Filter(
        name="cpu",
        sentence="Its host has cores left that can be promised to the container.",
        ruled_out="on hosts with too few cores left",
        refuses=_cpu,
    ),
    Filter(
        name="avoid",
        sentence="No function that the ask avoids runs on its node, and none that avoids the ask's function.",
        ruled_out="on nodes with functions that it avoids or that avoid it",
        refuses=_avoid,
    ),
    Filter(
        name="spread",
        sentence="Its node or zone has fewer of the function's containers than the hard limit.",
        ruled_out="where there are as many of its containers as may be",
        refuses=_spread,
    ),
    Filter(
        name="room",
        sentence="A slice that would do is free.",
        ruled_out="in use",
        refuses=_room,
    ),
)
FILTER_NAMES = tuple(item.name for item in FILTERS)
RULED_OUT = {item.name: item.ruled_out for item in FILTERS}


def refusal_at(fleet: Fleet, unit: Unit, ask: Ask) -> tuple[Filter, str] | None:
    """The first filter that refuses a unit, and why; None if none does."""
    for item in FILTERS:
        if why := item.refuses(fleet, unit, ask):
            return item, why
    return None


def crowding(fleet: Fleet, ask: Ask, node: NodeOccupancy) -> int:
    """The function's containers on the node, or in its zone, depending on the ask's spread; 0 without a spread."""
    if ask.spread is None:
        return 0
    if ask.spread.over is Over.NODE:
        return fleet.nodes_of(ask.function).get(node.rank, 0)
    domain = node.node.domain
    return fleet.zones(ask.function).get((domain.region, domain.zone), 0)
