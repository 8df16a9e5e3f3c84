"""The fleet: nodes, the containers on them, and the index by which decisions find a place.

`put`, `remove`, `hold` and `release` are the only changes; each is one revision. Changes inside `trial` are
provisional: a plan is made on the fleet itself and undone afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import NoOption, Prices
from pilotlight_placement.fleet import group_index
from pilotlight_placement.fleet.device_classes import DeviceClass, DeviceClassIndex, DeviceGroup, rank_in
from pilotlight_placement.fleet.history import Journal, Op, Trail
from pilotlight_placement.fleet.host_index import HostIndex
from pilotlight_placement.fleet.model_rooms import ModelRooms
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offer, Offers, Zone, offers_of
from pilotlight_placement.fragmentation.histogram import AskShape, DemandHistogram, distance
from pilotlight_placement.fragmentation.scores import Scores, scores_of
from pilotlight_placement.hardware.node import NO_SHARE, Domain, Gpu, Node, PlacedContainer, Slot, parts_of, rank_of

MAX_CACHED_ASKS = 8192


RETUNE = 0.1
"""Scores are recomputed when a twentieth of the demand has changed."""
NOTHING: Mapping[Zone, int] = MappingProxyType({})
NOWHERE: Mapping[int, int] = MappingProxyType({})


class ImpossibleChange(ValueError):
    """A change that the fleet's state does not allow."""


@dataclass(kw_only=True)
class FleetTransaction:
    """Provisional changes; `keep` makes them permanent."""

    kept: bool = False

    def keep(self) -> None:
        self.kept = True


class Fleet:
    """Nodes and the containers on them, with all indexes."""

    def __init__(self, nodes: Iterable[Node] = (), *, prices: Prices | None = None) -> None:
        self.revision = 0
        self.prices = prices or Prices()
        self.places: dict[str, NodeOccupancy] = {}
        self.by_rank: dict[int, NodeOccupancy] = {}
        self.units: dict[int, Unit] = {}
        self.groups: dict[tuple[DeviceClass, Domain], DeviceGroup] = {}
        self.classes: dict[DeviceClass, list[DeviceGroup]] = {}
        self.held: dict[str, PlacedContainer] = {}
        self.functions: dict[str, dict[str, PlacedContainer]] = {}
        self.resident: dict[str, set[int]] = {}
        """weights -> ranks of the nodes that have them."""
        self.hosts = HostIndex()
        self.models = ModelRooms()
        self.inventory = 0
        """A counter of changes of the nodes' hardware."""
        self.draining = 0
        self.withdrawn = 0
        """Withdrawn devices of other nodes."""
        self.mix: dict[AskShape, float] = {}
        self.journal = Journal()
        self.trail: Trail | None = None
        self._on_node: dict[str, dict[int, int]] = {}
        self._avoided_on: dict[str, dict[int, int]] = {}
        self._in_zone: dict[str, dict[Zone, int]] = {}
        self._trials = 0
        self._standing = 0
        self._offers: dict[Ask, tuple[tuple[int, int], Offers]] = {}
        self._scores: dict[tuple[str, tuple[int, ...]], Scores] = {}
        self._scores_by_kind: dict[str, Scores] = {}
        for node in nodes:
            self.put(node)

    @property
    def size(self) -> int:
        return len(self.units) - self.draining - self.withdrawn

    @property
    def standing(self) -> int:
        """The revision without the changes of trials."""
        return self._standing if self._trials else self.revision

    # --- what is there ---

    def put(self, node: Node) -> None:
        """Add a node, or replace its description. Containers whose slice is gone are released.

        Raises:
            ImpossibleChange: if two parts of the node have the same id.
        """
        ids = [part.id for part in parts_of(node)]
        if len(ids) != len(set(ids)):
            raise ImpossibleChange(f"{node.name}: two of its devices or slots have the same id")
        place = self.places.get(node.name)
        old = place.node if place else None
        if old == node:
            return
        staying = self._clear(place) if place and old and not is_same_hardware(old, node) else []
        self._set_node(old, node)
        self._log(Op(revision=self.revision + 1, before=old, after=node))
        for held in staying:
            if not self.refusal(held):
                self.hold(held)

    def remove(self, name: str) -> list[PlacedContainer]:
        """Remove a node; returns its containers, which are released.

        Raises:
            KeyError: if there is no such node.
        """
        place = self.places[name]
        lost = self._clear(place)
        self._set_node(place.node, None)
        self._log(Op(revision=self.revision + 1, before=place.node))
        return lost

    def drain(self, name: str, *, draining: bool = True) -> None:
        self.put(replace(self.places[name].node, draining=draining))

    def retune(self, mix: Mapping[AskShape, float]) -> None:
        """Score places by a new mix of demand: part of all asks, by shape."""
        self.mix = dict(mix)
        self._scores.clear()
        for group in self.groups.values():
            self._score(group)
        self._claim()

    def follow(self, histogram: DemandHistogram) -> None:
        """Score places by a histogram's mix of demand, if that differs by more than `RETUNE`."""
        mix = histogram.shares()
        if distance(mix, self.mix) > RETUNE:
            self.retune(mix)

    # --- who holds what ---

    def refusal(self, held: PlacedContainer) -> str:
        """Why a container cannot have its slice, or ""."""
        place = self.places.get(held.slice.node)
        if place is None:
            return f"there is no node {held.slice.node}"
        for name in held.slice.ids:
            if (unit := place.by_id.get(name)) is None:
                return f"{place.name} has no {name}"
            if why := unit.refusal(held):
                return why
        return "" if held.slice.ids else "it names no device"

    def hold(self, held: PlacedContainer) -> None:
        """Give a container its slice.

        Raises:
            ImpossibleChange: if the slice is not free, or the container has one.
        """
        if held.container in self.held:
            raise ImpossibleChange(f"{held.container} holds a slice already")
        if why := self.refusal(held):
            raise ImpossibleChange(why)
        self._hold(held)
        self._log(Op(revision=self.revision + 1, held=held))

    def release(self, container: str) -> PlacedContainer:
        """Free a container's slice.

        Raises:
            ImpossibleChange: if it has none.
        """
        if container not in self.held:
            raise ImpossibleChange(f"{container} holds nothing")
        held = self._release(container)
        self._log(Op(revision=self.revision + 1, held=held, taken=False))
        return held

    # --- what follows from it ---

    def offers(self, ask: Ask) -> Offers:
        """The offers for an ask, free or not; cached until there is a new group of devices or another price."""
        cached, known = self._offers.get(ask), (len(self.groups), self.prices.book.revision)
        if cached is not None and cached[0] == known:
            return cached[1]
        if len(self._offers) >= MAX_CACHED_ASKS:
            self._offers.clear()
        found = offers_of(ask, self.classes, self.prices)
        self._offers[ask] = (known, found)
        return found

    def offers_in(self, ask: Ask, group: DeviceGroup) -> tuple[Offer, ...]:
        return self.offers(ask).by_group.get(group, ())

    def refusal_of(self, ask: Ask, group: DeviceGroup) -> NoOption | None:
        return self.offers(ask).why.get(group)

    def zones(self, function: str) -> Mapping[Zone, int]:
        """A function's containers by (region, zone)."""
        return self._in_zone.get(function, NOTHING)

    def nodes_of(self, function: str) -> Mapping[int, int]:
        """A function's containers by rank of node."""
        return self._on_node.get(function, NOWHERE)

    def nodes_avoiding(self, function: str) -> Mapping[int, int]:
        """The containers that avoid a function, by rank of node."""
        return self._avoided_on.get(function, NOWHERE)

    def describe(self) -> str:
        """The serving devices and slots in words: "4 CPU slots, 1 H100-80GB"."""
        counts: dict[str, int] = {}
        for group in sorted(self.groups.values(), key=lambda group: group.kind.name):
            name = "CPU slot" if group.slot is not None and group.slot.kind is SliceKind.CPU else group.kind.name
            counts[name] = counts.get(name, 0) + group.total
        return ", ".join(f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n) or "nothing"

    # --- trials ---

    @contextmanager
    def without(self, units: Sequence[Unit]) -> Iterator[None]:
        """Offer nothing on some devices until the end of the block."""
        shut = [unit for unit in units if unit.is_offered]
        for unit in shut:
            group_index.remove(unit)
            unit.shut = True
            unit.node.different.clear()
        try:
            yield
        finally:
            for unit in shut:
                unit.shut = False
                group_index.add(unit)
                unit.node.different.clear()

    @contextmanager
    def trial(self) -> Iterator[FleetTransaction]:
        """Undo all changes inside, unless the transaction is kept. Trials nest."""
        start, trial = self.trail, FleetTransaction()
        self._standing = self.standing
        self._trials += 1
        try:
            yield trial
        finally:
            if not trial.kept:
                self._undo_to(start)
            self._trials -= 1
            if not self._trials:
                self._settle()

    def _undo_to(self, start: Trail | None) -> None:
        while self.trail is not start and self.trail is not None:
            op = self.trail.op
            if op.held is None:
                self._set_node(op.after, op.before)
            elif op.taken:
                self._release(op.held.container)
            else:
                self._hold(op.held)
            self.revision = op.revision - 1
            self.trail = self.trail.earlier

    def _settle(self) -> None:
        ops = []
        while self.trail is not None:
            ops.append(self.trail.op)
            self.trail = self.trail.earlier
        for op in reversed(ops):
            self.journal.add(op)

    def _log(self, op: Op) -> None:
        self.revision = op.revision
        if self._trials:
            self.trail = Trail(op=op, earlier=self.trail)
        else:
            self.journal.add(op)

    # --- changes without a record ---

    def _clear(self, place: NodeOccupancy) -> list[PlacedContainer]:
        held = {item.container: item for unit in place.units for item in unit.held.values()}
        for container in sorted(held):
            self.release(container)
        return [held[container] for container in sorted(held)]

    def _hold(self, held: PlacedContainer) -> None:
        place = self.places[held.slice.node]
        units = [place.by_id[name] for name in held.slice.ids]
        for unit in units:
            self._withdraw(unit)
            unit.put(held)
        self.held[held.container] = held
        self._promise(place, held, 1, units)
        for unit in units:
            self._offer(unit)
        if held.function:
            self.functions.setdefault(held.function, {})[held.container] = held
            self._count(held.function, place, 1)
        for function in held.avoid:
            _change(self._avoided_on, function, place.rank, 1)

    def _release(self, container: str) -> PlacedContainer:
        held = self.held.pop(container)
        place = self.places[held.slice.node]
        units = [place.by_id[name] for name in held.slice.ids]
        for unit in units:
            self._withdraw(unit)
            unit.drop(container)
        self._promise(place, held, -1, units)
        for unit in units:
            self._offer(unit)
        if held.function:
            del self.functions[held.function][container]
            if not self.functions[held.function]:
                del self.functions[held.function]
            self._count(held.function, place, -1)
        for function in held.avoid:
            _change(self._avoided_on, function, place.rank, -1)
        return held

    def _promise(self, place: NodeOccupancy, held: PlacedContainer, change: int, outside: Sequence[Unit]) -> None:
        place.memory += change * held.host.memory
        place.cpu += change * held.host.cpu_millis
        if (free := place.free_host) is not None:
            self.hosts.change(place.rank, free)
        self._measure(place, outside)

    def _measure(self, place: NodeOccupancy, outside: Sequence[Unit] = ()) -> None:
        """Set the node's room by what is free now; units that are being changed are not in the index."""
        if (room := place.room_now()) != place.room:
            group_index.move(place, room, outside)

    def _count(self, function: str, place: NodeOccupancy, change: int) -> None:
        domain = place.node.domain
        _change(self._on_node, function, place.rank, change)
        _change(self._in_zone, function, (domain.region, domain.zone), change)

    def _withdraw(self, unit: Unit) -> None:
        unit.node.different.clear()
        if unit.is_offered:
            group_index.remove(unit)

    def _offer(self, unit: Unit) -> None:
        if unit.is_offered:
            group_index.add(unit)

    def _set_node(self, before: Node | None, after: Node | None) -> None:
        if before is not None and after is not None and is_same_hardware(before, after):
            self._refresh(self.places[after.name], after)
            return
        self.inventory += 1
        if before is not None:
            self._take_away(self.places[before.name])
        if after is not None:
            self._bring(after)

    def _refresh(self, place: NodeOccupancy, node: Node) -> None:
        for weights in place.node.weights - node.weights:
            self._forget_weights(weights, place.rank)
        for weights in node.weights:
            self.resident.setdefault(weights, set()).add(place.rank)
        place.node = node
        self.hosts.put(place.rank, node.host, place.free_host)
        self._measure(place)
        for gpu in node.gpus:
            unit = place.by_id[gpu.id]
            if unit.gpu != gpu:
                self._withdraw(unit)
                unit.describe(gpu)
                self._offer(unit)

    def _forget_weights(self, weights: str, rank: int) -> None:
        self.resident[weights].discard(rank)
        if not self.resident[weights]:
            del self.resident[weights]

    def _bring(self, node: Node) -> None:
        rank = rank_of(node.name)
        while rank in self.by_rank:
            rank += 1
        place = NodeOccupancy(node, rank)
        self.places[node.name] = self.by_rank[rank] = place
        for index, part in enumerate(parts_of(node)):
            group = self._group(node, part)
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
                self._offer(unit)
            else:
                self._count_out(node, 1)
        for weights in node.weights:
            self.resident.setdefault(weights, set()).add(rank)
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
                self._withdraw(unit)
            else:
                self._count_out(place.node, -1)
            del self.units[unit.rank]
        for weights in place.node.weights:
            self._forget_weights(weights, place.rank)
        self.hosts.drop(place.rank)
        del self.places[place.name], self.by_rank[place.rank]

    def _group(self, node: Node, part: Gpu | Slot) -> DeviceGroup:
        sort = class_of_unit(part, spot=node.domain.spot)
        if (group := self.groups.get((sort, node.domain))) is None:
            device, slot = (part.device, None) if isinstance(part, Gpu) else (None, part)
            alike = self.classes.setdefault(sort, [])
            kinds = len(device.cuts) if device is not None and sort.mig else 1
            class_index = alike[0].class_index if alike else DeviceClassIndex(kinds, sort.name, self.models)
            group = DeviceGroup(sort, node.domain, device, slot, class_index, self._scores_by_kind)
            self.groups[sort, node.domain] = group
            alike.append(group)
            self.classes[sort].sort(key=lambda group: group.domain)
            self._score(group)
            if len(alike) == 1:
                self._claim()
        return group

    def _claim(self) -> None:
        self.models.claim([group.device for group in self.groups.values() if group.device is not None], self.mix)

    def _score(self, group: DeviceGroup) -> None:
        if group.device is None:
            group.class_index.reset_scores()
            return
        key = (group.kind.name, group.kind.variant)
        if key not in self._scores:
            self._scores[key] = scores_of(group.device, self.mix)
        group.scores = self._scores_by_kind[group.kind.name] = self._scores[key]
        group.class_index.reset_scores()


def is_same_hardware(one: Node, other: Node) -> bool:
    """Whether two descriptions of a node differ only in instances, weights and reservations."""

    def hardware(node: Node) -> Node:
        gpus = tuple(replace(gpu, instances=(), kept="") for gpu in node.gpus)
        return replace(node, weights=frozenset(), gpus=gpus, kept_host=NO_SHARE)

    return hardware(one) == hardware(other)


KeyT = TypeVar("KeyT")


def _change(counts: dict[str, dict[KeyT, int]], function: str, key: KeyT, change: int) -> None:
    inner = counts.setdefault(function, {})
    if left := inner.get(key, 0) + change:
        inner[key] = left
    else:
        del inner[key]
        if not inner:
            del counts[function]


def class_of_unit(part: Gpu | Slot, *, spot: bool) -> DeviceClass:
    if isinstance(part, Slot):
        return DeviceClass(name=part.type, slot=f"{part.kind.value} {part.memory} {part.ppm}", spot=spot)
    figures = (part.device.memory, *(cut.memory for cut in part.device.cuts))
    return DeviceClass(name=part.device.name, mig=part.mig, shareable=part.shareable, spot=spot, variant=figures)
