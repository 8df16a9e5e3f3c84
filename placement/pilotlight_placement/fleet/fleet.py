"""The fleet: nodes, the containers on them, and the index by which decisions find a place.

`put`, `remove`, `hold` and `release` are the only changes; each is one revision. Changes inside `trial` are
provisional: a plan is made on the fleet itself and undone afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import NoOption, Prices
from pilotlight_placement.fleet import group_index
from pilotlight_placement.fleet.device_classes import DeviceClass, DeviceGroup
from pilotlight_placement.fleet.device_groups import DeviceGroups
from pilotlight_placement.fleet.fleet_nodes import FleetNodes, is_same_hardware
from pilotlight_placement.fleet.function_containers import FunctionContainers
from pilotlight_placement.fleet.history import Journal, Op, Trail
from pilotlight_placement.fleet.occupancy import NodeOccupancy, Unit
from pilotlight_placement.fleet.offers import Offer, Offers, offers_of
from pilotlight_placement.fleet.tenant_holdings import HeldResources, TenantHoldings, resources_in
from pilotlight_placement.fragmentation.histogram import AskShape, DemandHistogram
from pilotlight_placement.hardware.node import Domain, Node, PlacedContainer, parts_of

MAX_CACHED_ASKS = 8192
RETUNE = 0.1
"""Scores are recomputed when a twentieth of the demand has changed."""


class ImpossibleChange(ValueError):
    """A change that the fleet's state does not allow."""


class FleetTransaction:
    """Provisional changes, which the end of its block undoes; `keep` makes them permanent."""

    __slots__ = ("_end", "kept", "start")

    def __init__(self, start: Trail | None, end: Callable[[FleetTransaction], None]) -> None:
        """`start`: the changes before it; it ends by `end`."""
        self.start = start
        self.kept = False
        self._end = end

    def keep(self) -> None:
        self.kept = True

    def __enter__(self) -> FleetTransaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end(self)


class Fleet:
    """Nodes and the containers on them, with all indexes."""

    def __init__(self, nodes: Iterable[Node] = (), *, prices: Prices | None = None) -> None:
        self.revision = 0
        self.prices = prices or Prices()
        self.device_groups = DeviceGroups()
        self.nodes = FleetNodes(self.device_groups)
        self.held: dict[str, PlacedContainer] = {}
        self._containers = FunctionContainers()
        self.holdings = TenantHoldings()

        # What searches read stands here too, as they read it often.
        self.places: Mapping[str, NodeOccupancy] = self.nodes.by_name
        self.by_rank: Mapping[int, NodeOccupancy] = self.nodes.by_rank
        self.units: Mapping[int, Unit] = self.nodes.units
        self.resident: Mapping[str, set[int]] = self.nodes.resident
        self.hosts = self.nodes.hosts
        self.groups: Mapping[tuple[DeviceClass, Domain], DeviceGroup] = self.device_groups.by_domain
        self.classes: Mapping[DeviceClass, list[DeviceGroup]] = self.device_groups.by_class
        self.models = self.device_groups.models
        self.functions: Mapping[str, Mapping[str, PlacedContainer]] = self._containers.by_function
        self.zones = self._containers.zones
        self.nodes_of = self._containers.nodes_of
        self.nodes_avoiding = self._containers.nodes_avoiding

        self.journal = Journal()
        self.trail: Trail | None = None
        self._trials = 0
        self._standing = 0
        self._offers: dict[Ask, tuple[tuple[int, int], Offers]] = {}
        self._capacity: tuple[int, HeldResources] | None = None
        self._mix_ahead: dict[AskShape, float] = {}
        """The mix of demand by which places are to be scored, as soon as all is made for it."""
        for node in nodes:
            self.put(node)

    @property
    def size(self) -> int:
        return len(self.units) - self.nodes.draining - self.nodes.withdrawn

    @property
    def capacity(self) -> HeldResources:
        """What its devices and slots that serve have in all."""
        if self._capacity is None or self._capacity[0] != self.nodes.inventory:
            self._capacity = self.nodes.inventory, resources_in(self.groups.values())
        return self._capacity[1]

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
        self.nodes.replace(old, node)
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
        self.nodes.replace(place.node, None)
        self._log(Op(revision=self.revision + 1, before=place.node))
        return lost

    def drain(self, name: str, *, draining: bool = True) -> None:
        self.put(replace(self.places[name].node, draining=draining))

    def retune(self, mix: Mapping[AskShape, float]) -> None:
        """Score places by a new mix of demand: part of all asks, by shape."""
        self.device_groups.retune(mix)

    def follow(self, histogram: DemandHistogram) -> None:
        """Score places by a histogram's mix of demand, if that differs by more than `RETUNE`."""
        if histogram.distance(self.device_groups.mix) > RETUNE:
            self.retune(histogram.shares())

    def follow_stepwise(self, histogram: DemandHistogram) -> bool:
        """The same in small steps, one for each kind of device: whoever decides must not wait for all.

        False: there are no more of them.
        """
        if not self._mix_ahead:
            self._mix_ahead = histogram.shares() if histogram.distance(self.device_groups.mix) > RETUNE else {}
        elif self.device_groups.prepare(self._mix_ahead):
            self.retune(self._mix_ahead)
            self._mix_ahead = {}
        return bool(self._mix_ahead)

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
        # Whose it is, and what it needs of the host, makes no difference: many functions ask for the same.
        shape = replace(ask, function="", tenant="", resident=(), spread=None, avoid=(), memory=0, cpu=0)
        cached = self._offers.get(shape)
        if cached is None or cached[0] != known:
            cached = self._offers[shape] = (known, offers_of(shape, self.classes, self.prices))
        self._offers[ask] = cached
        return cached[1]

    def offers_in(self, ask: Ask, group: DeviceGroup) -> tuple[Offer, ...]:
        return self.offers(ask).by_group.get(group, ())

    def refusal_of(self, ask: Ask, group: DeviceGroup) -> NoOption | None:
        return self.offers(ask).why.get(group)

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

    def trial(self) -> FleetTransaction:
        """Begin a block at whose end all changes inside are undone, unless the transaction is kept. Trials nest."""
        self._standing = self.standing
        self._trials += 1
        return FleetTransaction(self.trail, self._end_trial)

    def _end_trial(self, trial: FleetTransaction) -> None:
        if not trial.kept:
            self._undo_to(trial.start)
        self._trials -= 1
        if not self._trials:
            self._settle()

    def _undo_to(self, start: Trail | None) -> None:
        while self.trail is not start and self.trail is not None:
            op = self.trail.op
            if op.held is None:
                self.nodes.replace(op.after, op.before)
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
            group_index.withdraw(unit)
            unit.put(held)
        self.held[held.container] = held
        self.nodes.change_promise(place, held, 1, units)
        for unit in units:
            group_index.offer(unit)
        self._containers.add(held, place)
        self.holdings.add(held, place)

    def _release(self, container: str) -> PlacedContainer:
        held = self.held.pop(container)
        place = self.places[held.slice.node]
        units = [place.by_id[name] for name in held.slice.ids]
        for unit in units:
            group_index.withdraw(unit)
            unit.drop(container)
        self.nodes.change_promise(place, held, -1, units)
        for unit in units:
            group_index.offer(unit)
        self._containers.remove(held, place)
        self.holdings.remove(held, place)
        return held
