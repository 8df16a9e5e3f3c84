"""The fleet of a simulation: where `placement.plan` lets containers start, and what they cost there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_autoscaler.simulator.runs.simulated_function import SimulatedFunction
from pilotlight_core.model.messages.node_messages import UNPARKED, SliceKind, Stop
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fragmentation.histogram import AskShape, DemandHistogram
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.node import Gpu, Node, ParkedPlace, PlacedContainer, Slot
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.draft import PlanLimits
from pilotlight_placement.plan.plan import DesiredState, plan

GPUS_PER_NODE = 8
CPU_SLOTS = 64
"""Of one node without GPUs."""
LIMITS = PlanLimits(moves=0, blocked=0, empties=0)
"""Nothing is moved."""


@dataclass(frozen=True, kw_only=True)
class GpuGroup:
    """GPUs of one kind, on nodes of their own; without a device, CPU slots."""

    device: Device | None
    count: int
    mig: bool = False
    shareable: bool = False


class SimulatedFleet:
    def __init__(self, groups: Iterable[GpuGroup], prices: Prices | None = None) -> None:
        self.fleet = Fleet(_nodes_of(groups), prices=prices)
        self._plans = self._started = self._freed = 0
        self.ended: list[str] = []
        """What was parked in the way of the last start."""
        self._dollars: dict[DeviceGroup, float] = {}
        """What an hour of a device costs, which no simulation changes."""
        self._refused: dict[Ask, int] = {}
        """What had no place, whoever asked -> how many containers had gone by then."""

    def is_full_for(self, ask: Ask) -> bool:
        """Whether an ask like this one had no place, and no container has gone since."""
        return self._refused.get(_anybodys(ask)) == self._freed

    @property
    def size(self) -> int:
        return self.fleet.size

    def expect(self, asks: Iterable[Ask]) -> None:
        """Score places by what will be asked for."""
        histogram = DemandHistogram()
        for ask in asks:
            if (shape := AskShape.of(ask)) is not None:
                histogram.observe(shape, 0.0)
        if mix := histogram.shares():
            self.fleet.retune(mix)

    def start(self, function: SimulatedFunction, count: int, at: float) -> list[SimulatedContainer]:
        """Start so many containers of a function, as far as there are places."""
        self._plans += 1
        desired = DesiredState(wants=(), starts=((function.ask, count),), revision=self._plans)
        made = plan(self.fleet, desired, at, LIMITS, keep=True)
        if made.short:
            self._refused[_anybodys(function.ask)] = self._freed
        self.ended = [planned.command.container for planned in made.commands if isinstance(planned.command, Stop)]
        starts = (planned.command for planned in made.commands if isinstance(planned.command, PlannedStart))
        return [self._container_of(start.held, function, at) for start in starts]

    def release(self, container: SimulatedContainer) -> PlacedContainer:
        """A container has left its slice; which that was."""
        held = self.fleet.held[container.id]
        place = self.fleet.places[held.slice.node]
        unit = place.by_id[held.slice.ids[0]]
        if held.slice.profile and unit.gpu is not None:
            # Its MIG instance stays, idle.
            self._describe(
                place.node, replace(unit.gpu, instances=tuple(sorted({*unit.gpu.instances, *unit.instances()})))
            )
        self.fleet.release(container.id)
        self._freed += 1
        return held

    def mark_parked(self, held: PlacedContainer) -> None:
        """A container that is parked returns to its slice of a GPU."""
        slice_, node = held.slice, self.fleet.places[held.slice.node].node
        if slice_.kind is not SliceKind.CPU:
            place = ParkedPlace(held.container, held.tenant, slice_.ids[0], slice_.profile, slice_.start)
            self.fleet.put(replace(node, parked=tuple(sorted((*node.parked, place)))))

    def forget_parked(self, held: PlacedContainer) -> None:
        """It does not any more."""
        node = self.fleet.places[held.slice.node].node
        left = tuple([each for each in node.parked if each.container != held.container])
        if len(left) < len(node.parked):
            self.fleet.put(replace(node, parked=left))

    def unpark(self, held: PlacedContainer, function: SimulatedFunction, at: float) -> SimulatedContainer | None:
        """Give a parked container its slice again, or any CPU slot of its node; None: there is none free."""
        units = self.fleet.places[held.slice.node].units
        slot = held.slice.kind is SliceKind.CPU
        ids = [each.id for each in units if each.is_empty][:1] if slot else held.slice.ids
        for name in ids:
            again = replace(held, slice=replace(held.slice, ids=(name,)), since=at)
            if not self.fleet.refusal(again):
                self.fleet.hold(again)
                container = self._container_of(again, function, at)
                container.ready_at = container.idle_since = at + function.unpark_s
                container.timeline = {UNPARKED: function.unpark_s * 1000.0}
                return container
        return None

    def _describe(self, node: Node, gpu: Gpu) -> None:
        self.fleet.put(replace(node, gpus=tuple(gpu if other.id == gpu.id else other for other in node.gpus)))

    def _container_of(self, held: PlacedContainer, function: SimulatedFunction, at: float) -> SimulatedContainer:
        self._started += 1
        place, slice_ = self.fleet.places[held.slice.node], held.slice
        part, group = slice_.ppm * len(slice_.ids) / WHOLE_DEVICE, place.by_id[slice_.ids[0]].group
        if (dollars := self._dollars.get(group)) is None:
            dollars = self._dollars[group] = self._dollars_of(group)
        container = SimulatedContainer(held.container, self._started, at, function.load_s)
        container.gpus = 0.0 if slice_.kind is SliceKind.CPU else part
        container.dollars_per_hour = dollars * part
        container.slice = slice_.id
        return container

    def _dollars_of(self, group: DeviceGroup) -> float:
        prices = self.fleet.prices
        if group.device is not None:
            return prices.of(group.device, group.domain)
        return prices.of_slot(group.slot, group.domain) if group.slot is not None else 0.0


@lru_cache(maxsize=100_000)
def _anybodys(ask: Ask) -> Ask:
    """The ask without whose it is, where its place does not depend on that."""
    return ask if ask.spread or ask.avoid else replace(ask, function="", tenant="")


def _nodes_of(groups: Iterable[GpuGroup]) -> Iterator[Node]:
    number = 0
    for group in groups:
        left = group.count
        while left > 0:
            name = f"node-{number:05}"
            number += 1
            if group.device is None:
                size = min(left, CPU_SLOTS)
                slots = tuple(
                    Slot(id=f"cpu{index}", kind=SliceKind.CPU, type="CPU", memory=0, ppm=WHOLE_DEVICE)
                    for index in range(size)
                )
                yield Node(name=name, slots=slots)
            else:
                size = min(left, GPUS_PER_NODE)
                gpus = tuple(
                    Gpu(id=f"{name}-{index}", device=group.device, mig=group.mig, shareable=group.shareable)
                    for index in range(size)
                )
                yield Node(name=name, gpus=gpus)
            left -= size
