"""Reservation of devices, and of a part of their host, for the ask that has waited longest.

Without it an ask for several GPUs of a node, a large part of one, or much host memory would never get them where others
take each part as soon as it is free. What is least used is reserved for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.search.short_hosts import short_ever
from pilotlight_placement.search.tiers import avoided_nodes

NodeDevice = tuple[str, str]
"""A node, and a GPU or slot of it."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    ask: Ask
    devices: frozenset[NodeDevice]

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for node, _ in self.devices)

    @property
    def why(self) -> str:
        return f"it is kept for {self.ask.function}, which has waited longest"


def choose_reservation(fleet: Fleet, ask: Ask, avoided: Collection[NodeDevice] = ()) -> frozenset[NodeDevice]:
    """The least used devices of one node that would hold the ask; empty if no node could.

    Devices in `avoided` are chosen only if there are no others.
    """
    blocked = short_ever(fleet, ask).either | avoided_nodes(fleet, ask)
    found = [units for group in fleet.groups.values() for units in _device_sets(fleet, ask, group, blocked)]

    def burden(units: list[Unit]) -> tuple[bool, float, int, int]:
        again = any((unit.node.name, unit.id) in avoided for unit in units)
        return again, missing_host(units[0].node, ask), sum(map(used, units)), units[0].rank

    return frozenset((unit.node.name, unit.id) for unit in min(found, key=burden, default=[]))


def missing_host(node: NodeOccupancy, ask: Ask) -> float:
    """The part of the ask's memory and cores that a host has promised to others; 0 if it has both left."""
    free = node.free_host
    if free is None:
        return 0.0
    memory = max(0, ask.memory - free.memory) / (ask.memory or 1)
    return memory + max(0, ask.cpu - free.cpu_millis) / (ask.cpu or 1)


def used(unit: Unit) -> int:
    """The used part of a device, in millionths."""
    return sum(held.slice.ppm // len(held.slice.ids) for held in unit.held.values())


def _device_sets(fleet: Fleet, ask: Ask, group: DeviceGroup, blocked: Collection[int]) -> Iterator[list[Unit]]:
    """For each node its least used devices of a group, as many as the ask needs.

    A slot is reserved only on a host that is short now: otherwise the longest waiting ask gets the next one anyway.
    """
    offers = fleet.offers(ask)
    options = [offer.option for offer in offers.by_group.get(group, ())] or offers.switched(group)
    if not options:
        return
    count = min(option.count for option in options)
    for rank in group.nodes - set(blocked):
        node = fleet.by_rank[rank]
        units = [unit for unit in node.by_group[group] if unit.is_offered]
        if len(units) >= count and (group.device is not None or missing_host(node, ask)):
            yield sorted(units, key=lambda unit: (used(unit), unit.rank))[:count]


def reserve(fleet: Fleet, kept: Reservation) -> None:
    """Keep other containers off reserved GPUs and off what the ask needs of their host; present ones stay."""
    for name in sorted(kept.nodes):
        if (place := fleet.places.get(name)) is not None:
            gpus = (replace(g, kept=kept.why) if (name, g.id) in kept.devices else g for g in place.node.gpus)
            fleet.put(replace(place.node, gpus=tuple(gpus), kept_host=kept.ask.host))
