"""Nodes whose containers run calls that last, and a controller over them on a virtual clock: who has how much.

Time is a number of seconds and goes on in steps of a pass. What is wanted is kept wanted: a function has so many calls
under way at any time, and each that ends is followed by another. The decisions are the controller's own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import msgspec

from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.decision import Decision
from pilotlight_autoscaler.passes.pass_input import PassInput, PassOptions
from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_core.model.messages.demand import ClassLoad, Demand
from pilotlight_core.model.messages.node_messages import (
    Bind,
    ContainerReport,
    ContainerState,
    Drain,
    NodeReport,
    Shortage,
    SliceReport,
    Stop,
)
from pilotlight_core.model.spec import Priority, VersionRecord
from tests.builders.nodes import cpu_slot, gpu_device, gpu_slice, node_report
from tests.builders.specs import function_spec, version_record

STEP_S = 0.25
"""As often as the controller decides."""


@dataclass(kw_only=True)
class LastingLoad:
    """A function, and the calls to it that are wanted at any time."""

    record: VersionRecord
    calls_s: Callable[[], float]
    """How long the next call takes."""
    load_s: float = 1.0
    calls: int = 0
    """As many wait or run at any time."""
    priority: Priority = Priority.STANDARD
    waiting: deque[float] = field(default_factory=deque)
    """Since when."""
    service_s: float = 0.0
    running: int = 0
    arrived: int = 0
    was_called: bool = False
    """When it was last told of."""

    def demand(self, at: float) -> Demand:
        told = Demand(
            version=self.record.id, tenant=self.record.tenant, gateway="g", epoch=1, queued=len(self.waiting),
            oldest_ms=(at - self.waiting[0]) * 1000.0 if self.waiting else 0.0, running=self.running,
            arrivals=self.arrived, service_ms=self.service_s * 1000.0,
            classes={str(self.priority): ClassLoad(queued=len(self.waiting), running=self.running)},
        )  # fmt: skip
        self.arrived = 0
        return told


@dataclass(kw_only=True)
class BusyContainer:
    bind: Bind
    node: str
    since: float
    ready_at: float
    idle_since: float
    ends: float | None = None
    """When its call ends."""
    draining: bool = False

    def state(self, at: float) -> ContainerState:
        if self.draining:
            return ContainerState.DRAINING
        return ContainerState.READY if at >= self.ready_at else ContainerState.LOADING


@dataclass(kw_only=True)
class BusyFleet:
    """The nodes, the world as the controller sees it, and what both did."""

    slices: Mapping[str, tuple[SliceReport, ...]]
    """By node."""
    terms: Mapping[str, Limits] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    loads: dict[str, LastingLoad] = field(default_factory=dict)
    world: World = field(default_factory=World)
    at: float = 1_000.0
    there: dict[str, BusyContainer] = field(default_factory=dict)
    drains: Counter[str] = field(default_factory=Counter)
    """Busy or idle containers that were told to go, by tenant."""
    starts: Counter[str] = field(default_factory=Counter)
    short: dict[str, Shortage] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))
    _seq: int = 0

    def add(self, load: LastingLoad) -> None:
        self.loads[load.record.id] = load

    def run(self, for_s: float) -> Iterator[Decision]:
        """Let the time pass; what was decided at each step."""
        until = self.at + for_s
        while self.at < until:
            yield self.step()

    def step(self) -> Decision:
        self.at += STEP_S
        self._work()
        self._tell()
        given = PassInput(
            versions={name: load.record for name, load in self.loads.items()}, deployed=self.loads, epoch=1,
            new_id=lambda _: f"ctr_{next(self._ids)}", at=self.at, wall=self.at, options=PassOptions(force=False),
            limits_of=lambda tenant: self.terms.get(tenant, NO_LIMITS),
            weight_of=lambda tenant: self.weights.get(tenant, 1.0),
        )  # fmt: skip
        made = Pass(self.world, given).run()
        self.short = {shortage.version: shortage for shortage in made.shortages}
        for sent in made.commands:
            self._obey(sent.node, sent.command)
        return made

    def held(self) -> Counter[str]:
        """Slices by tenant."""
        return Counter(each.bind.tenant for each in self.there.values())

    def ready(self, tenant: str) -> int:
        """A tenant's containers that take calls."""
        states = (each.state(self.at) for each in self.there.values() if each.bind.tenant == tenant)
        return sum(state is ContainerState.READY for state in states)

    def of(self, version: str) -> list[BusyContainer]:
        return [each for each in self.there.values() if each.bind.version == version]

    def _work(self) -> None:
        """Calls end, others begin, and what drains goes once it has none."""
        for name, each in list(self.there.items()):
            load = self.loads[each.bind.version]
            if each.ends is not None and self.at >= each.ends:
                each.ends, each.idle_since = None, self.at
                load.running -= 1
            if each.draining and each.ends is None:
                del self.there[name]
        for load in self.loads.values():
            for _ in range(load.calls - load.running - len(load.waiting)):
                load.waiting.append(self.at)
                load.arrived += 1
            while len(load.waiting) > max(0, load.calls - load.running):
                load.waiting.pop()
        for each in self.there.values():
            load = self.loads[each.bind.version]
            if each.ends is None and load.waiting and each.state(self.at) is ContainerState.READY:
                load.waiting.popleft()
                took = load.calls_s()
                load.service_s = took if not load.service_s else 0.9 * load.service_s + 0.1 * took
                load.running += 1
                each.ends = self.at + took

    def _tell(self) -> None:
        self._seq += 1
        on_node: dict[str, list[tuple[str, BusyContainer]]] = {node: [] for node in self.slices}
        for name, each in self.there.items():
            on_node[each.node].append((name, each))
        for node, slices in self.slices.items():
            self.world.on_report(self._report(node, slices, on_node[node]), self.at)
        for load in self.loads.values():
            is_called = bool(load.calls or load.running)
            if is_called or load.was_called:  # a home says once that there is nothing more
                self.world.on_demand(load.demand(self.at), self.at)
            load.was_called = is_called
        self.world.forget(self.at)

    def _report(self, node: str, slices: Iterable[SliceReport], there: list[tuple[str, BusyContainer]]) -> NodeReport:
        on = {each.bind.slice: name for name, each in there}
        told = tuple(
            ContainerReport(
                id=name, version=each.bind.version, tenant=each.bind.tenant, app="hello", function="greet",
                slice=each.bind.slice, state=each.state(self.at), slots=1, running=int(each.ends is not None),
                age_s=self.at - each.since, idle_s=0.0 if each.ends is not None else self.at - each.idle_since,
                host=each.bind.host,
            )
            for name, each in there
        )  # fmt: skip
        shown = tuple(msgspec.structs.replace(part, container=on.get(part.id, "")) for part in slices)
        devices = tuple(gpu_device(part.id) for part in shown if part.device != "cpu")
        return node_report(node, self._seq, slices=shown, devices=devices, containers=told)

    def _obey(self, node: str, command: object) -> None:
        match command:
            case Bind():
                self.starts[command.tenant] += 1
                self.world.pending[command.container] = PendingBind(bind=command, node=node, at=self.at)
                taken = {(each.node, each.bind.slice) for each in self.there.values()}
                assert (node, command.slice) not in taken, "two containers on one slice"
                ready_at = self.at + self.loads[command.version].load_s
                self.there[command.container] = BusyContainer(
                    bind=command, node=node, since=self.at, ready_at=ready_at, idle_since=ready_at
                )
            case Drain() | Stop():
                self.world.draining[command.container] = self.at
                gone = self.there[command.container]
                self.drains[gone.bind.tenant] += 1
                gone.draining = True


def cpu_nodes(nodes: int, slots: int) -> dict[str, tuple[SliceReport, ...]]:
    """Nodes of CPU slots."""
    return {f"n{n}": tuple(cpu_slot(m) for m in range(slots)) for n in range(nodes)}


def gpu_nodes(nodes: int, gpus: int) -> dict[str, tuple[SliceReport, ...]]:
    """Nodes of H100."""
    return {f"n{n}": tuple(gpu_slice(f"GPU-{n}-{m}") for m in range(gpus)) for n in range(nodes)}


def lasting(
    tenant: str, name: str, *, calls: int = 0, call_s: tuple[float, float] = (1.0, 1.0), seed: int = 0,
    load_s: float = 1.0, priority: Priority = Priority.STANDARD, **options: Any,
) -> LastingLoad:  # fmt: skip
    """A tenant's function of which so many calls are wanted at any time; each takes a time within `call_s`."""
    random = Random(f"{seed} {tenant} {name}")
    made = version_record(function_spec(**{"max_containers": 100} | options), id=f"ver_{tenant}_{name}")
    made = msgspec.structs.replace(made, tenant=tenant, function=name)
    return LastingLoad(
        record=made, calls=calls, calls_s=lambda: random.uniform(*call_s), load_s=load_s, priority=priority
    )
