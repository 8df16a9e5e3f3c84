"""A plan in the making: the fleet under trial, the commands so far, and their dependencies.

A start on devices that this plan frees waits for the commands that free them. Commands are numbered in the order of
their addition, and each waits only for earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import HostShare, Stop
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Gpu, Node, ParkedPlace, PlacedContainer, Slice
from pilotlight_placement.plan.commands import PlanCommand, PlannedCommand, PlannedStart
from pilotlight_placement.search.decision_record import NoFit, Placement


@dataclass(frozen=True, kw_only=True)
class DesiredFunction:
    """How many containers a function should have; None: as many as it has, which may be moved.

    `load_s` is the cost of a move: seconds to load it elsewhere.
    """

    ask: Ask
    count: int | None
    load_s: float = 30.0
    movable: bool = True


@dataclass(frozen=True, kw_only=True)
class PlanLimits:
    """Limits of one plan, beyond starting and stopping."""

    moves: int = 20
    move_s: float = 600.0
    """Seconds of loading that one group of moves may cost."""
    min_residency_s: float = 600.0
    """A younger container is not moved."""
    donors: int = 20
    """Devices tried for each blocked ask, and for consolidation."""
    blocked: int = 20
    """Attempts to make room."""
    empties: int = 2
    switches: int = 4
    horizon_s: float = 3600.0
    """The worth of an emptied device, in seconds of its time."""


OtherFunctions = Callable[[str], DesiredFunction | None]
"""Of a function: how its containers may be moved; None: not at all."""


def none_else(_function: str) -> DesiredFunction | None:
    """No function beside those that are named."""
    return None


EVERYTHING = -1
"""All memory slices of a device."""
PlanOutcome = tuple[str, Placement | NoFit]
"""A container's id ("" without a place) and the decision."""


@dataclass(kw_only=True)
class Draft:
    fleet: Fleet
    wants: Mapping[str, DesiredFunction]
    at: float
    revision: int
    limits: PlanLimits
    epoch: int = 0
    """The leader's, for its commands."""
    commands: list[PlanCommand] = field(default_factory=list)
    outcomes: list[PlanOutcome] = field(default_factory=list)
    freed: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    """(node, device) -> the commands that free parts of it: their numbers, and masks of memory slices."""
    freed_hosts: dict[str, list[tuple[int, HostShare]]] = field(default_factory=dict)
    """node -> the numbers of the commands that free parts of its host, and these."""
    others: OtherFunctions = none_else
    """Of functions that are not among `wants`."""
    fixed: Container[str] = frozenset()
    """Containers that must stay."""
    explain: bool = True
    """Whether decisions say what lost to them."""
    waiting: frozenset[str] = frozenset()
    """Tenants for which nothing is moved."""
    moved: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    tries: int = 0
    """Attempts to make room."""
    switched: int = 0
    groups: int = 0
    ordinals: dict[str, int] = field(default_factory=dict)

    def want(self, function: str) -> DesiredFunction | None:
        """How many containers a function should have, and what a move of one costs; None: they stay."""
        return self.wants.get(function) or self.others(function)

    def new_group(self) -> int:
        self.groups += 1
        return self.groups

    def new_id(self, function: str) -> str:
        """An unused container id, deterministic for a revision and fleet."""
        while True:
            ordinal = self.ordinals[function] = self.ordinals.get(function, 0) + 1
            name = f"{function}~{self.revision}.{ordinal}"
            if name not in self.fleet.held:
                return name

    @contextmanager
    def attempt(self) -> Iterator[DraftAttempt]:
        """Undo fleet and commands at the end of the block, unless the attempt is kept."""
        marks = len(self.commands), len(self.outcomes), dict(self.ordinals), self.groups, self.switched
        freed, moved = {place: list(numbers) for place, numbers in self.freed.items()}, set(self.moved)
        freed_hosts = {node: list(shares) for node, shares in self.freed_hosts.items()}
        attempt = DraftAttempt()
        with self.fleet.trial() as trial:
            yield attempt
            if attempt.kept:
                trial.keep()
        if not attempt.kept:
            del self.commands[marks[0] :], self.outcomes[marks[1] :]
            self.ordinals, self.groups, self.switched = marks[2], marks[3], marks[4]
            self.freed, self.moved, self.freed_hosts = freed, moved, freed_hosts

    # --- commands ---

    def start(self, ask: Ask, found: Placement, group: int, replaces: str = "") -> PlacedContainer:
        """Start a container at its place; create its MIG instance first if it does not exist."""
        held = found.held(self.new_id(ask.function), since=self.at)
        self._end_parked(found.slice, ask, group)
        if found.slice.profile:
            self.cut(found.slice, group)
        self.fleet.hold(held)
        waits: tuple[int, ...] = ()
        if self.freed or self.freed_hosts:
            waits = tuple(sorted({*self._waits(held.slice), *self._waits_for_host(held.slice.node)}))
        self._add(held.slice.node, PlannedStart(held=held, replaces=replaces), group, waits)
        self.outcomes.append((held.container, found))
        return held

    def stop(self, held: PlacedContainer, reason: str, group: int, after: tuple[int, ...] = ()) -> None:
        """Stop a container; a start in its place waits for that. Its MIG instance stays, idle."""
        if held.slice.profile:
            node, gpu, used = self._gpu(held.slice.node, held.slice.ids[0])
            self._describe(node, replace(gpu, instances=tuple(sorted({*gpu.instances, *used}))))
        self.fleet.release(held.container)
        command = Stop(epoch=self.epoch, container=held.container, reason=reason)
        number = self._add(held.slice.node, command, group, after)
        self.stopped.add(held.container)
        for name in held.slice.ids:
            self._frees(held.slice.node, name, number, self._window(held.slice))
        self.freed_hosts.setdefault(held.slice.node, []).append((number, held.host))

    def _end_parked(self, wanted: Slice, ask: Ask, group: int) -> None:
        """Stop what is parked in the way of a slice, before anything is cut or starts there."""
        place = self.fleet.places[wanted.node]
        for name in wanted.ids if place.node.parked else ():
            unit = place.by_id[name]
            family = unit.gpu.device.family if unit.gpu is not None else None
            profile = family.by_key[wanted.profile].index if family is not None and wanted.profile else -1
            for at in unit.parked_beside(ask.tenant, profile, wanted.start):
                self._stop_parked(wanted.node, at, f"its GPU is needed for {ask.function}", group)

    def _stop_parked(self, node_name: str, at: ParkedPlace, reason: str, group: int) -> None:
        node = self.fleet.places[node_name].node
        if all(each.container != at.container for each in node.parked):
            return  # of several devices, the first has done it
        self.fleet.put(replace(node, parked=tuple(each for each in node.parked if each.container != at.container)))
        number = self._add(node_name, Stop(epoch=self.epoch, container=at.container, reason=reason), group, ())
        gpu = self.fleet.places[node_name].by_id[at.part].gpu
        shape = gpu.device.family.by_key.get(at.profile) if gpu is not None and gpu.device.family else None
        self._frees(node_name, at.part, number, shape.mask(at.start) if shape is not None else EVERYTHING)

    def cut(self, wanted: Slice, group: int) -> None:
        """Create the instance of a slice, and destroy idle ones in its way."""
        node, gpu, used = self._gpu(wanted.node, wanted.ids[0])
        family = gpu.device.family
        instance = MigPlacement(start=wanted.start, profile=wanted.profile)
        there = {*gpu.instances, *used}
        if family is None or (instance in there and instance not in used):
            return
        profile = family.by_key[wanted.profile]
        in_the_way = {
            other
            for other in there - used
            if family.by_key[other.profile].mask(other.start) & profile.mask(wanted.start)
            or (profile.media and family.by_key[other.profile].media)
        }
        command = Cut(epoch=self.epoch, device=gpu.id, destroy=tuple(sorted(in_the_way)), create=(instance,))
        number = self._add(node.name, command, group, self._waits(wanted))
        touched = family.masks_of(in_the_way) | profile.mask(wanted.start)
        self._frees(node.name, gpu.id, number, touched)
        self._describe(node, replace(gpu, instances=tuple(sorted(there - in_the_way | {instance}))))

    def switch(self, node_name: str, gpu_id: str, group: int, *, on: bool) -> None:
        """Switch the MIG mode of an idle GPU, which destroys its instances."""
        for at in self.fleet.places[node_name].by_id[gpu_id].parked:
            self._stop_parked(node_name, at, "its GPU is cut anew", group)
        node, gpu, _ = self._gpu(node_name, gpu_id)
        waits = tuple(number for number, _ in self.freed.get((node_name, gpu_id), ()))
        number = self._add(node_name, SwitchMig(epoch=self.epoch, device=gpu_id, on=on), group, waits)
        self._frees(node_name, gpu_id, number, EVERYTHING)
        self.switched += 1
        self._describe(node, replace(gpu, mig=on, instances=()))

    def _add(
        self, node: str, command: PlannedStart | Stop | Cut | SwitchMig, group: int, after: tuple[int, ...]
    ) -> int:
        number = len(self.commands)
        self.commands.append(PlannedCommand(number=number, group=group, after=after, node=node, command=command))
        return number

    def _frees(self, node: str, device: str, number: int, window: int) -> None:
        self.freed.setdefault((node, device), []).append((number, window))

    def _waits(self, wanted: Slice) -> tuple[int, ...]:
        window = self._window(wanted)
        freed = [pair for name in wanted.ids for pair in self.freed.get((wanted.node, name), ())]
        return tuple(sorted({number for number, slices in freed if slices & window}))

    def _waits_for_host(self, node: str) -> tuple[int, ...]:
        """The commands without which the node's host would be promised more than it has."""
        free, freed = self.fleet.places[node].free_host, self.freed_hosts.get(node, [])
        if free is None:
            return ()
        memory = free.memory - sum(share.memory for _, share in freed)
        cpu = free.cpu_millis - sum(share.cpu_millis for _, share in freed)
        return tuple(number for number, _ in freed) if min(memory, cpu) < 0 else ()

    def _window(self, slice_: Slice) -> int:
        """The memory slices of a MIG instance; for any other slice, all."""
        gpu = self.fleet.places[slice_.node].by_id[slice_.ids[0]].gpu
        if not slice_.profile or gpu is None or gpu.device.family is None:
            return EVERYTHING
        profile = gpu.device.family.by_key[slice_.profile]
        # Only one instance of a device has the video engines, wherever it is.
        return EVERYTHING if profile.media else profile.mask(slice_.start)

    def _gpu(self, node_name: str, gpu_id: str) -> tuple[Node, Gpu, set[MigPlacement]]:
        place = self.fleet.places[node_name]
        unit = place.by_id[gpu_id]
        if unit.gpu is None:
            raise LookupError(f"{gpu_id} is no GPU that can be cut")
        return place.node, unit.gpu, set(unit.instances())

    def _describe(self, node: Node, gpu: Gpu) -> None:
        gpus = tuple(gpu if other.id == gpu.id else other for other in node.gpus)
        self.fleet.put(replace(node, gpus=gpus))


@dataclass(kw_only=True)
class DraftAttempt:
    """Steps of a draft that are undone unless they are kept."""

    kept: bool = False

    def keep(self) -> None:
        self.kept = True
