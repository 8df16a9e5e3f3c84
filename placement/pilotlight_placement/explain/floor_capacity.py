"""How many containers of one ask a fleet holds: at most, and now."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import NoOption, Option, options, slot_options
from pilotlight_placement.fleet.device_classes import DeviceClass, DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy
from pilotlight_placement.fleet.offers import Zone, refused_domain
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import SHARE_UNITS
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.place import place

UNBOUNDED = 1 << 30
"""Containers on a host that does not say what it has."""
DeviceCapacity = tuple[int, int]
"""(containers that one device holds, devices that one container needs; 0: it cannot)."""


def most_containers(fleet: Fleet, ask: Ask) -> int:
    """An upper bound of the containers of an ask that the whole fleet could hold, if it were free and cut for them.

    Functions to avoid are ignored, and GPUs whose MIG mode is switched without a reset count in the better mode.
    """
    known: dict[DeviceClass, DeviceCapacity] = {}
    by_zone: dict[Zone, int] = {}
    spread = ask.spread.most if ask.spread is not None else None
    over = ask.spread.over if ask.spread is not None else None
    for where in fleet.places.values():
        domain = where.node.domain
        if refused_domain(ask, domain):
            continue
        count = min(_on_node(where, ask, known), _on_host(where.node.host, ask))
        count = count if spread is None or over is not Over.NODE else min(count, spread)
        zone = (domain.region, domain.zone)
        by_zone[zone] = by_zone.get(zone, 0) + count
    if spread is None or over is not Over.ZONE:
        return sum(by_zone.values())
    return sum(min(count, spread) for count in by_zone.values())


def containers_that_fit(fleet: Fleet, ask: Ask, wanted: int) -> int:
    """How many of `wanted` containers would find a place now. The fleet is unchanged."""
    with fleet.trial():
        for number in range(wanted):
            found = place(fleet, ask)
            if isinstance(found, NoFit):
                return number
            fleet.hold(found.held(f"{ask.function}~{number}"))
    return wanted


def _on_node(where: NodeOccupancy, ask: Ask, known: dict[DeviceClass, DeviceCapacity]) -> int:
    count = 0
    together: dict[str, list[int]] = {}
    for unit in where.units:
        if not unit.serves:
            continue
        kind = unit.group.kind
        if kind not in known:
            known[kind] = _on_device(unit.group, ask)
        alone, several = known[kind]
        count += alone
        if several and not alone:
            together.setdefault(kind.name, []).append(several)
    return count + sum(len(needs) // min(needs) for needs in together.values())


def _on_host(host: HostShare | None, ask: Ask) -> int:
    """How many containers the host's memory and cores are enough for."""
    memory = host.memory // ask.memory if host is not None and ask.memory else UNBOUNDED
    return min(memory, host.cpu_millis // ask.cpu if host is not None and ask.cpu else UNBOUNDED)


def _on_device(group: DeviceGroup, ask: Ask) -> DeviceCapacity:
    if group.slot is not None:
        return int(not isinstance(slot_options(ask, group.slot), NoOption)), 0
    if group.device is None:
        return 0, 0
    alone, several = 0, 0
    for mig in (True, False) if group.device.online_mig else (group.kind.mig,):
        made = options(ask, group.device, mig=mig, shareable=group.kind.shareable)
        if isinstance(made, NoOption):
            continue
        if mig and group.device.family is not None:
            alone = max(alone, instances(group.device.family, frozenset(option.profile for option in made)))
        elif not mig:
            alone = max(alone, _plain(made))
            several = min((option.count for option in made if option.count > 1), default=0)
    return alone, several


def _plain(made: Iterable[Option]) -> int:
    return max((SHARE_UNITS // option.units if option.units else 1 for option in made if option.count == 1), default=0)


@lru_cache(maxsize=1024)
def instances(family: Family, profiles: frozenset[int]) -> int:
    """The most MIG instances of some profiles (by index) on a device; one for profiles with media engines.

    Exhaustive: over the occupancy masks, of which there are at most 256.
    """
    if any(family.profiles[index].media for index in profiles):
        return 1
    best = [0] * (family.full + 1)
    for mask in range(family.full, -1, -1):
        for index in profiles:
            for start in family.free_starts[mask][index]:
                best[mask] = max(best[mask], 1 + best[mask | family.profiles[index].mask(start)])
    return best[0]
