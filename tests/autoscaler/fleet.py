"""A fleet of nodes in memory, and a controller that drives it, with assertions on what a controller must never do.

Time is a number. Nodes answer commands at once and execute them in the next step, as agents do; a start takes
`start_steps` steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.decision import Decision
from pilotlight_autoscaler.passes.pass_input import PassInput, PassOptions
from pilotlight_autoscaler.plans.plan_execution import AgentCommand
from pilotlight_core.model.devices import DeviceReport, InstanceReport, MigMode, MigPlacement, SliceName
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import (
    Bind,
    ContainerReport,
    ContainerState,
    Drain,
    HostShare,
    Keep,
    NodeReport,
    Park,
    SliceKind,
    SliceReport,
    Stop,
    Unpark,
)
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.hardware.catalogue import standard
from tests.autoscaler.builders import record
from tests.builders.nodes import bind

MIB, GIB = 2**20, 2**30
H100 = (GpuAsk("H100"),)
HOST = HostShare(cpu_millis=8000, memory=64 * 2**30)


@dataclass(kw_only=True)
class FakeGpu:
    """One GPU: its instances, and the containers on them."""

    id: str
    kind: str
    mig: MigMode = MigMode.OFF
    instances: set[MigPlacement] = field(default_factory=set)
    refused: str = ""
    broken: bool = False
    """Cutting it fails, after it was said to be under way."""

    def report(self, on: Mapping[str, str]) -> DeviceReport:
        device = standard()[self.kind]
        made = tuple(
            InstanceReport(
                slice=f"{self.id}:{i}", place=MigPlacement(start=i.start, profile=i.profile),
                name=i.profile, uuid="MIG-0",
                memory=MIB, ppm=1, container=on.get(f"{self.id}:{i}", ""),
            )
            for i in sorted(self.instances)
        )  # fmt: skip
        mig = self.mig if device.family else MigMode.NONE
        return DeviceReport(
            id=self.id, type=self.kind, name=self.kind, memory=device.memory * MIB, price=self.kind.lower(), mig=mig,
            instances=made, refused=self.refused,
        )  # fmt: skip


@dataclass(kw_only=True)
class FakeContainer:
    bind: Bind
    since: float
    ready_at: float
    leaving: bool = False
    idle_since: float | None = None


@dataclass(kw_only=True)
class FakeNode:
    """A node and its agent."""

    name: str
    gpus: list[FakeGpu]
    zone: str = "z"
    start_steps: int = 2
    draining: bool = False
    host: HostShare = HOST
    containers: dict[str, FakeContainer] = field(default_factory=dict)
    parked: dict[str, FakeContainer] = field(default_factory=dict)
    """What has left its GPU, and returns to it."""
    log: list[AgentCommand | Keep | Park | Unpark] = field(default_factory=list)
    busy: bool = True
    """Whether its containers have calls."""
    _seq: int = 0

    def report(self, at: float) -> NodeReport:
        self._seq += 1
        on = {each.bind.slice: name for name, each in self.containers.items()}
        return NodeReport(
            node=self.name, instance="i", seq=self._seq, region="local", zone=self.zone, sandbox="s",
            devices=tuple(gpu.report(on) for gpu in self.gpus), draining=self.draining, slices=self._wholes(),
            containers=(
                *(self._container(name, each, at) for name, each in self.containers.items()),
                *(self._asleep(name, each, at) for name, each in self.parked.items()),
            ),
            host=self.host,
        )  # fmt: skip

    def _wholes(self) -> tuple[SliceReport, ...]:
        """GPUs that are given whole, each with its container, be it one of several that this container has."""
        named = ((SliceName.parse(each.bind.slice), name) for name, each in self.containers.items())
        on = {device: name for slice_, name in named if not slice_.profile for device in slice_.devices}
        return tuple(
            SliceReport(
                id=gpu.id, kind=SliceKind.GPU, device=gpu.id, ppm=1_000_000, price=gpu.kind.lower(), gpu_type=gpu.kind,
                memory=standard()[gpu.kind].memory * MIB, container=on.get(gpu.id, ""),
            )
            for gpu in self.gpus
            if gpu.mig is not MigMode.ON
        )  # fmt: skip

    def _container(self, name: str, each: FakeContainer, at: float) -> ContainerReport:
        tenant, _, rest = each.bind.function.partition(":")
        app, _, function = rest.partition(".")
        state = ContainerState.READY if at >= each.ready_at else ContainerState.LOADING
        return ContainerReport(
            id=name, version=each.bind.version, tenant=tenant, app=app, function=function, slice=each.bind.slice,
            state=ContainerState.DRAINING if each.leaving else state, slots=1, running=int(self.busy),
            age_s=at - each.since, idle_s=0.0 if self.busy else max(0.0, at - each.ready_at), host=each.bind.host,
        )  # fmt: skip

    def _asleep(self, name: str, each: FakeContainer, at: float) -> ContainerReport:
        awake = self._container(name, each, at)
        return msgspec.structs.replace(
            awake, slice="", state=ContainerState.PARKED, running=0, idle_s=1.0, parks=each.bind.slice
        )

    def park(self, container: str) -> None:
        """A container leaves its GPU."""
        self.parked[container] = self.containers.pop(container)

    def parked_on(self, gpu: FakeGpu) -> list[tuple[SliceName, str]]:
        """The slices to which something returns, and whose it is."""
        found = ((SliceName.parse(each.bind.slice), each.bind.tenant) for each in self.parked.values())
        return [(name, tenant) for name, tenant in found if gpu.id in name.devices]

    def gpu(self, name: str) -> FakeGpu:
        return next(gpu for gpu in self.gpus if gpu.id == name)

    def used(self, gpu: FakeGpu) -> list[SliceName]:
        names = [SliceName.parse(each.bind.slice) for each in self.containers.values()]
        return [name for name in names if gpu.id in name.devices]

    def take(self, command: AgentCommand | Keep | Park | Unpark, at: float) -> str:
        """Execute a command; the reason if it is refused."""
        self.log.append(command)
        match command:
            case Bind():
                return self._bind(command, at)
            case Drain(container=name) | Stop(container=name):
                assert not self.draining, "a container of a draining node was told to go"
                if self.parked.pop(name, None) is not None:
                    return ""
                if name not in self.containers:
                    return "gone"
                self.containers[name].leaving = True
                return ""
            case Cut():
                return self._cut(command)
            case SwitchMig():
                return self._switch(command)
            case Keep():
                return ""
            case Unpark():
                return self._unpark(command, at)
            case Park():
                raise AssertionError("it has no memory for what is parked")

    def step(self) -> None:
        """What was leaving has gone."""
        self.containers = {name: each for name, each in self.containers.items() if not each.leaving}

    def _bind(self, bind: Bind, at: float) -> str:
        assert not self.draining, "a start on a draining node"
        if bind.container in self.containers:
            return ""
        wanted = SliceName.parse(bind.slice)
        for device in wanted.devices:
            gpu = self.gpu(device)
            taken = self.used(gpu)
            for name, tenant in self.parked_on(gpu):
                beside = not (wanted.profile and name.profile) or wanted == name
                assert tenant == bind.tenant or not beside, "a start beside what another tenant has parked"
            if wanted.profile:
                assert MigPlacement(start=wanted.start, profile=wanted.profile) in gpu.instances, (
                    "its instance is not there"
                )
                if any((t.profile, t.start) == (wanted.profile, wanted.start) for t in taken):
                    return "slice_taken"
            else:
                assert gpu.mig is not MigMode.ON, "a whole GPU in MIG mode"
                if taken:
                    return "slice_taken"
        shares = [bind.host, *(each.bind.host for each in self.containers.values())]
        assert bind.host.memory > 0, "a start without a promise"
        assert sum(share.memory for share in shares) <= self.host.memory, "more memory is promised than there is"
        assert sum(share.cpu_millis for share in shares) <= self.host.cpu_millis, "more cores than there are"
        self.containers[bind.container] = FakeContainer(bind=bind, since=at, ready_at=at + self.start_steps)
        return ""

    def _unpark(self, command: Unpark, at: float) -> str:
        each = self.parked.get(command.container)
        if each is None:
            return "gone"
        assert command.slice == each.bind.slice, "it returns to its own slice alone"
        back = SliceName.parse(command.slice)
        if any(back == name or not (back.profile and name.profile) for name in self.used(self.gpu(back.devices[0]))):
            return "slice_taken"
        self.containers[command.container] = self.parked.pop(command.container)
        return ""

    def _cut(self, command: Cut) -> str:
        gpu = self.gpu(command.device)
        assert gpu.mig is MigMode.ON, "a GPU that is not in MIG mode was cut"
        destroy = {MigPlacement(start=place.start, profile=place.profile) for place in command.destroy}
        create = {MigPlacement(start=place.start, profile=place.profile) for place in command.create}
        used = {MigPlacement(start=name.start, profile=name.profile) for name in self.used(gpu)}
        assert not used & destroy, "an instance in use would be destroyed"
        parked = {MigPlacement(start=name.start, profile=name.profile) for name, _ in self.parked_on(gpu)}
        assert not parked & destroy, "the instance of what is parked would be destroyed"
        if gpu.broken:
            gpu.refused = "the driver failed"
            return ""
        family = standard()[gpu.kind].family
        assert family is not None
        left = (gpu.instances - destroy) | create
        family.masks_of(left)
        gpu.instances = left
        return ""

    def _switch(self, command: SwitchMig) -> str:
        gpu = self.gpu(command.device)
        assert standard()[gpu.kind].online_mig, "MIG mode switched where it needs a reset"
        assert not self.used(gpu), "MIG mode of a GPU in use"
        assert not self.parked_on(gpu), "MIG mode of a GPU on which something is parked"
        gpu.mig, gpu.instances = (MigMode.ON if command.on else MigMode.OFF), set()
        return ""


@dataclass(kw_only=True)
class FakeFleet:
    """Nodes, a world, and the controller's loop over both."""

    nodes: list[FakeNode]
    versions: dict[str, VersionRecord] = field(default_factory=dict)
    bounds: PassOptions = field(default_factory=PassOptions)
    world: World = field(default_factory=World)
    at: float = 1_000.0
    notes: list[str] = field(default_factory=list)
    short: dict[str, str] = field(default_factory=dict)
    """version -> why it waits, as of the last step."""
    silent: set[str] = field(default_factory=set)
    _since: dict[str, float] = field(default_factory=dict)
    """version -> when its calls began to wait."""
    _ids: count[int] = field(default_factory=lambda: count(1))

    def step(self, queued: Mapping[str, int] | None = None) -> Decision:
        """One second: reports come in, a pass decides, its commands are carried out."""
        self.at += 1.0
        for node in self.nodes:
            node.step()
            if node.name not in self.silent:
                self.world.on_report(node.report(self.at), self.at)
        self._since = {version: self._since.get(version, self.at) for version in queued or {}}
        for version, waiting in (queued or {}).items():
            self.world.on_demand(self._demand(version, waiting), self.at)
        self.world.forget(self.at)
        self._advance_plans()
        given = PassInput(
            versions=self.versions, deployed=self.versions, epoch=1, new_id=lambda _: f"ctr_{next(self._ids)}",
            at=self.at, options=self.bounds or PassOptions(),
        )  # fmt: skip
        made = Pass(self.world, given).run()
        self.notes += made.notes
        self.short = {shortage.version: shortage.reason for shortage in made.shortages}
        for sent in made.commands:
            self._send(sent.node, sent.command)
        for steps in made.executions:
            assert self.world.executions.add(steps)
        self._advance_plans()
        self.check()
        return made

    def check(self) -> None:
        """Every container where the placement fleet has it, and no copy without its original's life."""
        check_integrity(self.world.fleet(self.at))

    def running(self, version: str) -> list[str]:
        return sorted(
            name for node in self.nodes for name, each in node.containers.items() if each.bind.version == version
        )

    def place_of(self, container: str) -> str:
        return next(
            f"{node.name}/{node.containers[container].bind.slice}"
            for node in self.nodes
            if container in node.containers
        )

    def _advance_plans(self) -> None:
        due, notes = self.world.executions.advance(self.world, self.at)
        self.notes += notes
        for step in due:
            self._send(step.node, step.command)

    def _send(self, name: str, command: AgentCommand | Keep | Park | Unpark) -> None:
        if isinstance(command, Bind):
            self.world.pending[command.container] = PendingBind(bind=command, node=name, at=self.at)
        elif isinstance(command, Drain):
            self.world.draining[command.container] = self.at
        node = next(node for node in self.nodes if node.name == name)
        if name in self.silent:
            return
        if (reason := node.take(command, self.at)) and not isinstance(command, Keep | Park | Unpark):
            self.world.executions.refused(command, reason)
            if isinstance(command, Bind):
                del self.world.pending[command.container]

    def _demand(self, version: str, waiting: int) -> Demand:
        return Demand(
            version=version, tenant=self.versions[version].tenant, gateway="g", epoch=1, queued=waiting,
            oldest_ms=10.0 + 1000.0 * (self.at - self._since[version]), running=0, arrivals=waiting, service_ms=1e6,
        )  # fmt: skip


def version(name: str, *, tenant: str = "acme", **options: Any) -> VersionRecord:
    """A version of a function of its own."""
    made = record(f"ver_{name}", **options)
    return msgspec.structs.replace(made, tenant=tenant, function=name)


def h100(name: str, *, mig: bool = False) -> FakeGpu:
    return FakeGpu(id=name, kind="H100-80GB", mig=MigMode.ON if mig else MigMode.OFF)


def small(name: str = "small", gib: int = 8, **more: Any) -> VersionRecord:
    return version(name, gpu=H100, vram=gib * GIB, **more)


def fleet_of(*nodes: FakeNode, versions: tuple[VersionRecord, ...], bounds: PassOptions | None = None) -> FakeFleet:
    known = {made.id: made for made in versions}
    return FakeFleet(nodes=list(nodes), versions=known, bounds=bounds or PassOptions())


def occupy(node: FakeNode, slice_: str, function: str, since: float) -> None:
    """A container of `function` has run on the slice since that instant."""
    node.take(bind(f"old_{node.name}", f"ver_{function}", slice=slice_, function=f"acme:hello.{function}"), since)


def commands(node: FakeNode) -> list[str]:
    return [type(command).__name__ for command in node.log]
