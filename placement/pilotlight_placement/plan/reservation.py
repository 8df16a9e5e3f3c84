"""Reservation of devices for the ask that has waited longest.

Without it an ask for several GPUs of a node, or a large part of one, would never get them while others take each part
as soon as it is free. The devices with the least use are reserved for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.search.tiers import blocked_nodes

NodeDevice = tuple[str, str]
"""A node, and a GPU of it."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    ask: Ask
    devices: frozenset[NodeDevice]

    @property
    def why(self) -> str:
        return f"it is kept for {self.ask.function}, which has waited longest"


def choose_reservation(fleet: Fleet, ask: Ask, avoided: Collection[NodeDevice] = ()) -> frozenset[NodeDevice]:
    """The least used devices of one node that would hold the ask; empty if no node could.

    Devices in `avoided` are chosen only if there are no others.
    """
    blocked = blocked_nodes(fleet, ask)
    found = [units for group in fleet.groups.values() for units in _device_sets(fleet, ask, group, blocked)]

    def burden(units: list[Unit]) -> tuple[bool, int, int]:
        again = any((unit.node.name, unit.id) in avoided for unit in units)
        return again, sum(map(used, units)), units[0].rank

    return frozenset((unit.node.name, unit.id) for unit in min(found, key=burden, default=[]))


def used(unit: Unit) -> int:
    """The used part of a device, in millionths."""
    return sum(held.slice.ppm // len(held.slice.ids) for held in unit.held.values())


def _device_sets(fleet: Fleet, ask: Ask, group: DeviceGroup, blocked: Collection[int]) -> Iterator[list[Unit]]:
    """For each node its least used devices of a group, as many as the ask needs."""
    offers = fleet.offers(ask)
    options = [offer.option for offer in offers.by_group.get(group, ())] or offers.switched(group)
    if group.device is None or not options:
        return
    count = min(option.count for option in options)
    for rank in group.nodes - set(blocked):
        units = [unit for unit in fleet.by_rank[rank].by_group[group] if unit.is_offered]
        if len(units) >= count:
            yield sorted(units, key=lambda unit: (used(unit), unit.rank))[:count]


def reserve(fleet: Fleet, kept: Reservation) -> None:
    """Keep other containers off reserved devices; present ones stay."""
    for name in sorted({node for node, _ in kept.devices}):
        if (place := fleet.places.get(name)) is not None:
            gpus = (replace(g, kept=kept.why) if (name, g.id) in kept.devices else g for g in place.node.gpus)
            fleet.put(replace(place.node, gpus=tuple(gpus)))
