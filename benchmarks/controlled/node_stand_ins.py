"""Nodes that report each second and on change, send credits, and answer commands, as agents do.

Ten thousand containers in one process: what does not change in a report is made once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from pilotlight_core.model.devices import DeviceReport, InstanceReport, MigMode, MigPlacement, ProfileReport, SliceName
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import (
    Bind,
    CommandReply,
    ContainerReport,
    ContainerState,
    Credit,
    Drain,
    EndedContainer,
    HostShare,
    NodeReport,
    SandboxCeilings,
    SliceKind,
    SliceReport,
    Stop,
)
from pilotlight_core.model.versions.manifest_codec import FEATURES
from pilotlight_placement.asks.ask import GIB, MIB
from pilotlight_placement.fleet.reports import name_of
from pilotlight_placement.hardware.node import Gpu, Node, PlacedContainer
from pilotlight_runtime.calls.credits import REPEAT_GONE_S

INSTANCE = "i1"
CEILINGS = SandboxCeilings(shm=GIB, scratch=GIB, pids=1024)
CPU_SLOTS = 8
START_S = 1.0
"""How long a start takes."""
SLOTS = 4
RUNNING = 3
"""Calls in a busy container of `SLOTS`: as many as need it, so that no other one is wanted."""
IDLE_PART = 0.1
"""Of the containers, as far as their functions may have idle ones."""
TIMELINE = {"bind": 1.0, "stage": 20.0, "load": 900.0, "warm": 0.0, "check": 1.0}


@dataclass(kw_only=True)
class StandInContainer:
    version: str
    tenant: str
    app: str
    function: str
    slice: str
    host: HostShare
    since: float
    always_busy: bool = True
    serves: bool = True
    """Whether it has calls at all."""


@dataclass(kw_only=True)
class StandInNode:
    node: Node
    containers: dict[str, StandInContainer] = field(default_factory=dict)
    rng: random.Random
    served: Mapping[str, bool] = field(default_factory=dict)
    """Busy versions -> whether each container of theirs always is; one that is bound for another has no calls."""
    serving: Counter[str] = field(default_factory=Counter)
    """Containers that serve, by version, on all nodes that share it."""
    _seq: int = 0
    _slices: tuple[SliceReport, ...] = ()
    _devices: tuple[DeviceReport, ...] = ()
    _is_known: bool = False
    _revision: int = 0
    _still: tuple[object, ...] = ()
    """What else than hardware is new when the revision is."""
    _ended: list[tuple[EndedContainer, float]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.node.name

    def take(self, held: PlacedContainer, version: str, at: float) -> None:
        """Have a container that a former leader has bound."""
        tenant, _, rest = held.function.partition(":")
        app, _, function = rest.partition(".")
        self.containers[held.container] = StandInContainer(
            version=version, tenant=tenant, app=app, function=function, slice=name_of(held.slice, held.container),
            host=held.host, since=at - 100.0, always_busy=self.served.get(version, True),
        )  # fmt: skip
        self.serving[version] += 1
        self._is_known = False

    def obey(self, command: Bind | Drain | Stop | Cut | SwitchMig, at: float) -> CommandReply:
        """Execute a command at once, as far as it shows in reports."""
        match command:
            case Bind(container=name, function=of) if name not in self.containers:
                tenant, _, rest = of.partition(":")
                app, _, function = rest.partition(".")
                self.containers[name] = StandInContainer(
                    version=command.version, tenant=tenant, app=app, function=function, slice=command.slice,
                    host=command.host, since=at, always_busy=self.served.get(command.version, True),
                    serves=command.version in self.served,
                )  # fmt: skip
                self.serving[command.version] += command.version in self.served
            case Drain(container=name) | Stop(container=name):
                if (gone := self.containers.pop(name, None)) is not None:
                    ended = EndedContainer(id=name, version=gone.version, tenant=gone.tenant, was_ready=True)
                    self._ended.append((ended, at))
                    self.serving[gone.version] -= gone.serves
            case Cut(device=device):
                self.node = _with_cut(self.node, device, command)
            case SwitchMig(device=device):
                self.node = _with_mode(self.node, device, on=command.on)
        self._is_known = False
        return CommandReply(ok=True, epoch=command.epoch)

    def report(self, at: float) -> NodeReport:
        self._seq += 1
        self._ended = [(one, since) for one, since in self._ended if at - since < REPEAT_GONE_S]
        still = (*(_state(each, at) for each in self.containers.values()), *(one.id for one, _ in self._ended))
        if not self._is_known or still != self._still:
            self._still, self._revision = still, self._revision + 1
        if not self._is_known:
            self._is_known = True
            on = {each.slice: name for name, each in self.containers.items()}
            self._devices = tuple(_device(gpu, on) for gpu in self.node.gpus)
            self._slices = (*_slots(), *_wholes(self.node, on), *_shares(self.node, on))
        return NodeReport(
            node=self.name, instance=INSTANCE, seq=self._seq, region="local", zone=self.node.domain.zone,
            sandbox="bubblewrap", slices=self._slices, devices=tuple(map(self._gauged, self._devices)),
            spot=self.node.domain.spot,
            containers=tuple(self._container(name, each, at) for name, each in self.containers.items()),
            blanks={"default": 2}, controller_epoch=1, host=self.node.host, bases=("default",),
            features=tuple(sorted(FEATURES)), ceilings=CEILINGS,
            ended=tuple(one for one, _ in self._ended), revision=self._revision,
        )  # fmt: skip

    def _gauged(self, device: DeviceReport) -> DeviceReport:
        """With what its driver says of this second."""
        percent = self.rng.randrange(100)
        instances = tuple([msgspec.structs.replace(one, utilisation=percent) for one in device.instances])
        used = percent * device.memory // 100
        return msgspec.structs.replace(device, instances=instances, utilisation=percent, memory_used=used)

    def credits(self, at: float) -> list[Credit]:
        """One of each container."""
        return [
            Credit(
                container=name, version=each.version, tenant=each.tenant, node=self.name, instance=INSTANCE, epoch=1,
                seq=self._seq * 100 + number, state=_state(each, at), slots=SLOTS, held=(),
                function=f"{each.tenant}:{each.app}.{each.function}", timeline=TIMELINE,
            )
            for number, (name, each) in enumerate(self.containers.items())
        ]  # fmt: skip

    def _container(self, name: str, each: StandInContainer, at: float) -> ContainerReport:
        state = _state(each, at)
        idle = not each.serves or (not each.always_busy and self.rng.random() < IDLE_PART)
        running = 0 if idle or state is not ContainerState.READY else RUNNING
        idle_s = 0.0 if running else max(0.0, at - each.since - START_S) if not each.serves else self.rng.random() * 5
        return ContainerReport(
            id=name, version=each.version, tenant=each.tenant, app=each.app, function=each.function,
            slice=each.slice, state=state, slots=SLOTS, running=running, age_s=at - each.since, idle_s=idle_s,
            calls=int(at - each.since), timeline=TIMELINE, memory_bytes=GIB, host=each.host,
        )  # fmt: skip


def _state(each: StandInContainer, at: float) -> ContainerState:
    return ContainerState.READY if at - each.since >= START_S else ContainerState.LOADING


def _with_cut(node: Node, device: str, cut: Cut) -> Node:
    gpus = []
    for gpu in node.gpus:
        if gpu.id == device:
            gone = {(place.start, place.profile) for place in cut.destroy}
            left = [place for place in gpu.instances if (place.start, place.profile) not in gone]
            gpu = replace(gpu, instances=tuple(sorted([*left, *cut.create])))
        gpus.append(gpu)
    return replace(node, gpus=tuple(gpus))


def _with_mode(node: Node, device: str, *, on: bool) -> Node:
    """With the device in or out of MIG mode; its idle instances are gone."""
    gpus = (replace(gpu, mig=on, instances=()) if gpu.id == device and gpu.mig is not on else gpu for gpu in node.gpus)
    return replace(node, gpus=tuple(gpus))


def _device(gpu: Gpu, on: dict[str, str]) -> DeviceReport:
    device, made = gpu.device, []
    places = {*gpu.instances, *(_place(name) for name in map(SliceName.parse, on) if _is_on(name, gpu))}
    for place in sorted(places):
        slice_ = f"{gpu.id}:{place.profile}@{place.start}"
        made.append(
            InstanceReport(
                slice=slice_, place=place, name=place.profile, uuid=f"MIG-{slice_}", memory=10 * GIB, ppm=142_857,
                container=on.get(slice_, ""), utilisation=50,
            )
        )  # fmt: skip
    profiles = tuple(
        ProfileReport(name=cut.name, memory=cut.memory, sms=cut.sms, size=cut.profile.size, starts=cut.profile.starts)
        for cut in device.cuts
    )
    mode = MigMode.NONE if device.family is None else MigMode.ON if gpu.mig else MigMode.OFF
    return DeviceReport(
        id=gpu.id, type=device.name, name=f"NVIDIA {device.name}", memory=device.memory * MIB,
        price=device.name.partition("-")[0].lower(), mig=mode, shareable=gpu.shareable, instances=tuple(made),
        profiles=profiles, utilisation=50, memory_used=10 * GIB, processes=1,
    )  # fmt: skip


def _is_on(name: SliceName, gpu: Gpu) -> bool:
    return bool(name.profile) and name.devices == (gpu.id,)


def _place(name: SliceName) -> MigPlacement:
    return MigPlacement(start=name.start, profile=name.profile)


def _slots() -> tuple[SliceReport, ...]:
    return tuple(
        SliceReport(
            id=f"cpu-{number}", kind=SliceKind.CPU, device="cpu", ppm=1_000_000 // CPU_SLOTS, price="128xcpu",
            memory=16 * GIB,
        )
        for number in range(CPU_SLOTS)
    )  # fmt: skip


def _wholes(node: Node, on: dict[str, str]) -> list[SliceReport]:
    parsed = [(SliceName.parse(slice_), name) for slice_, name in on.items()]
    shared = {name.devices[0] for name, _ in parsed if name.units}
    held = {device: name for parts, name in parsed if not parts.profile and not parts.units for device in parts.devices}
    return [
        SliceReport(
            id=gpu.id, kind=SliceKind.GPU, device=gpu.id, ppm=1_000_000,
            price=gpu.device.name.partition("-")[0].lower(), gpu_type=gpu.device.name,
            memory=gpu.device.memory * MIB, container=held.get(gpu.id, ""),
        )
        for gpu in node.gpus
        if not gpu.mig and gpu.id not in shared
    ]  # fmt: skip


def _shares(node: Node, on: dict[str, str]) -> list[SliceReport]:
    types = {gpu.id: gpu.device for gpu in node.gpus}
    found = []
    for slice_, container in on.items():
        name = SliceName.parse(slice_)
        if name.units:
            device = types[name.devices[0]]
            found.append(
                SliceReport(
                    id=slice_, kind=SliceKind.SHARE, device=name.devices[0], ppm=name.ppm or 0,
                    price=device.name.partition("-")[0].lower(), gpu_type=device.name,
                    memory=device.memory * MIB * name.units // 1000, container=container,
                )
            )  # fmt: skip
    return found
