"""The nodes of a fleet with their devices, by name and by rank; where weights are, and what hosts have left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pilotlight_placement.fleet import group_index
from pilotlight_placement.fleet.device_classes import rank_in
from pilotlight_placement.fleet.device_groups import DeviceGroups
from pilotlight_placement.fleet.host_index import HostIndex
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.hardware.node import NO_SHARE, Gpu, Node, PlacedContainer, parts_of, rank_of


class FleetNodes:
    def __init__(self, groups: DeviceGroups) -> None:
        self.by_name: dict[str, NodeOccupancy] = {}
        self.by_rank: dict[int, NodeOccupancy] = {}
        self.units: dict[int, Unit] = {}
        """By rank."""
        self.resident: dict[str, set[int]] = {}
        """weights, or an environment -> ranks of the nodes that have it."""
        self.hosts = HostIndex()
        self.inventory = 0
        """A counter of changes of the nodes' hardware."""
        self.draining = 0
        """Devices of nodes that drain."""
        self.withdrawn = 0
        """Withdrawn devices of other nodes."""
        self._groups = groups

    def replace(self, before: Node | None, after: Node | None) -> None:
        """Put a node's new description in the place of the old one; None: it is not there. It holds no container then,
        unless only its instances, warmth or reservations change.
        """
        if before is not None and after is not None and is_same_hardware(before, after):
            self._refresh(self.by_name[after.name], after)
            return
        self.inventory += 1
        if before is not None:
            self._take_away(self.by_name[before.name])
        if after is not None:
            self._bring(after)

    def change_promise(self, place: NodeOccupancy, held: PlacedContainer, change: int, outside: Sequence[Unit]) -> None:
        """Promise a container its share of the host (`change` 1), or take the promise back (-1).

        `outside` are the units that are being changed, which the index of their groups does not have now.
        """
        place.memory += change * held.host.memory
        place.cpu += change * held.host.cpu_millis
        if (free := place.free_host) is not None:
            self.hosts.change(place.rank, free)
        self._measure(place, outside)

    def _measure(self, place: NodeOccupancy, outside: Sequence[Unit] = ()) -> None:
        """Set the node's room by what is free now."""
        if (room := place.room_now()) != place.room:
            group_index.move(place, room, outside)

    def _refresh(self, place: NodeOccupancy, node: Node) -> None:
        for name in place.node.resident - node.resident:
            self._forget_resident(name, place.rank)
        for name in node.resident:
            self.resident.setdefault(name, set()).add(place.rank)
        before, place.node = place.node, node
        self.hosts.put(place.rank, node.host, place.free_host)
        self._measure(place)
        for gpu in node.gpus:
            unit = place.by_id[gpu.id]
            if unit.gpu != gpu:
                group_index.withdraw(unit)
                unit.describe(gpu)
                group_index.offer(unit)
        if (before.blanks, before.parked) != (node.blanks, node.parked):
            for unit in place.units:
                _renew_warmth(unit)

    def _forget_resident(self, name: str, rank: int) -> None:
        self.resident[name].discard(rank)
        if not self.resident[name]:
            del self.resident[name]

    def _bring(self, node: Node) -> None:
        rank = rank_of(node.name)
        while rank in self.by_rank:
            rank += 1
        place = NodeOccupancy(node, rank)
        self.by_name[node.name] = self.by_rank[rank] = place
        for index, part in enumerate(parts_of(node)):
            group = self._groups.group_of(node, part)
            unit = Unit(place, rank_in(rank, index), group, part)
            place.add(unit)
            self.units[unit.rank] = unit
        place.room = place.room_now()
        for unit in place.units:
            group = unit.group
            if unit.serves:
                group.total += 1
                group.nodes.add(rank)
                group.serving[rank] = group.serving.get(rank, 0) + 1
                group_index.offer(unit)
            else:
                self._count_out(node, 1)
        for name in node.resident:
            self.resident.setdefault(name, set()).add(rank)
        self.hosts.put(rank, node.host, place.free_host)

    def _count_out(self, node: Node, change: int) -> None:
        if node.draining:
            self.draining += change
        else:
            self.withdrawn += change

    def _take_away(self, place: NodeOccupancy) -> None:
        for unit in place.units:
            if unit.serves:
                unit.group.total -= 1
                unit.group.nodes.discard(place.rank)
                unit.group.serving.pop(place.rank, None)
                group_index.withdraw(unit)
            else:
                self._count_out(place.node, -1)
            del self.units[unit.rank]
        for name in place.node.resident:
            self._forget_resident(name, place.rank)
        self.hosts.drop(place.rank)
        del self.by_name[place.name], self.by_rank[place.rank]


def _renew_warmth(unit: Unit) -> None:
    ready, parked = unit.warmth_in(unit.node.node)
    if (ready, parked) != (unit.ready, unit.parked):
        group_index.withdraw(unit)
        unit.ready, unit.parked = ready, parked
        group_index.offer(unit)


def is_same_hardware(one: Node, other: Node) -> bool:
    """Whether two descriptions of a node differ only in instances, warmth and reservations."""
    if len(one.gpus) != len(other.gpus) or _bare(one) != _bare(other):
        return False
    pairs = zip(one.gpus, other.gpus, strict=True)
    return all(mine is theirs or _uncut(mine) == _uncut(theirs) for mine, theirs in pairs)


def _uncut(gpu: Gpu) -> Gpu:
    return replace(gpu, instances=(), recut=(), kept="")


def _bare(node: Node) -> Node:
    return replace(node, gpus=(), resident=frozenset(), blanks=frozenset(), parked=(), kept_host=NO_SHARE)
