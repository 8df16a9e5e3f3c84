"""A `FleetMirror` keeps its fleet equal to the nodes' reports, and changes only what differs.

GPUs have mode and MIG instances as the driver reports them (`NodeReport.devices`); CPU slots, and slices of GPUs that
an agent does not describe, become slots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from pilotlight_core.model.devices import DeviceReport, MigMode, ProfileReport, SliceName
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import ContainerState, HostShare, NodeReport, SliceKind, SliceReport
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_placement.asks.ask import CPU, MIB
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reported_holds import ReportedHolds
from pilotlight_placement.hardware.catalogue import Device, ProfileReading, corrected, standard
from pilotlight_placement.hardware.geometry import Layout
from pilotlight_placement.hardware.node import (
    NO_SHARE,
    SHARE_UNITS,
    BlankPlace,
    Domain,
    Gpu,
    Node,
    NodeAbilities,
    ParkedPlace,
    PlacedContainer,
    Slice,
    Slot,
)

CHANGING = "it is being changed"
NOTHING_RESIDENT: Final[frozenset[str]] = frozenset()


def slot_of(part: SliceReport) -> Slot:
    memory = part.memory // MIB
    if part.kind is SliceKind.CPU:
        return Slot(id=part.id, kind=part.kind, type=CPU, memory=memory, ppm=part.ppm)
    # For a part of a GPU the size of the whole is unknown, so its name stays as it is.
    whole = memory if part.kind is SliceKind.GPU else 0
    kind = part.gpu_type.upper()
    name = standard().device(kind, memory).name if whole else kind
    return Slot(id=part.id, kind=part.kind, type=name, memory=memory, ppm=part.ppm)


def gpu_of(report: DeviceReport) -> Gpu:
    """A reported device. One that contradicts the catalogue has no MIG, or is withdrawn if it is in MIG mode."""
    mig = report.mig is MigMode.ON
    withdrawn = report.withdrawn
    device = standard().device(report.type.upper(), report.memory // MIB)
    try:
        device = _as_read(report.type, report.memory, report.profiles)
        instances = tuple(sorted(instance.place for instance in report.instances))
        if mig and device.family is None:
            raise ValueError(f"how a {device.name} is cut is not known")
        if device.family is not None:
            device.family.masks_of(instances)
    except (ValueError, KeyError) as error:
        device, instances = replace(device, family=None, cuts=()), ()
        withdrawn = withdrawn or (f"it is cut otherwise than is known: {error}" if mig else "")
        mig = False
    if report.mig is MigMode.NONE and device.family is not None:
        device = replace(device, family=None, cuts=())
    return Gpu(
        id=report.id,
        device=device,
        mig=mig,
        shareable=report.shareable,
        instances=instances,
        withdrawn=withdrawn,
        kept=CHANGING if report.changing else "",
        software=report.fake,
    )


@lru_cache(maxsize=1024)
def _as_read(kind: str, memory: int, profiles: tuple[ProfileReport, ...]) -> Device:
    """The device with its driver's figures, cached: equal reports share one object."""
    readings = [
        ProfileReading(name=each.name, memory=each.memory, sms=each.sms, size=each.size, starts=each.starts)
        for each in profiles
    ]
    return corrected(standard().device(kind.upper(), memory // MIB), memory=memory // MIB, readings=readings)


def node_of(report: NodeReport) -> Node:
    """The node of a report."""
    gpus = {device.id: gpu_of(device) for device in report.devices}
    slots = {
        part.id: slot_of(part)
        for part in report.slices
        if part.kind is SliceKind.CPU or not gpus  # an agent that describes its GPUs describes them all
    }
    return Node(
        name=report.node,
        domain=Domain(
            region=report.region, zone=report.zone, pool=report.pool, spot=report.spot, abilities=abilities_of(report)
        ),
        gpus=tuple(gpus.values()),
        slots=tuple(slots.values()),
        host=report.host,
        draining=report.draining,
        resident=frozenset(report.environments),
        blanks=blank_places(report),
        parked=parked_places(report),
    )


def blank_places(report: NodeReport) -> frozenset[BlankPlace]:
    """Where blanks are ready. How many CPU slots could have one makes no difference."""
    found = {BlankPlace("", base) for base in _ready_bases(report)}
    for part in report.slices:
        if part.blank and (name := _name(part.id)) is not None:
            found.add(BlankPlace(name.devices[0], part.blank, name.profile, name.start))
    return frozenset(found)


def _ready_bases(report: NodeReport) -> set[str]:
    """The base environments of which a blank is ready for a CPU slot."""
    return {base for base, count in report.blanks.items() if count}


def parked_places(report: NodeReport) -> tuple[ParkedPlace, ...]:
    """Where its containers that are parked off a GPU return to."""
    asleep = [each for each in report.containers if each.state is ContainerState.PARKED and not each.slice]
    if not asleep:
        return ()
    gpus = {device.id for device in report.devices} | {
        part.id for part in report.slices if part.kind is not SliceKind.CPU
    }
    found = []
    for each in asleep:  # of those off CPU slots agents say that any will do
        if (name := _name(each.parks)) is not None and gpus.issuperset(name.devices):
            found += [ParkedPlace(each.id, each.tenant, part, name.profile, name.start) for part in name.devices]
    return tuple(sorted(found))


def abilities_of(report: NodeReport) -> NodeAbilities:
    """What its agent can do; an older one says nothing of it."""
    most = report.ceilings
    return NodeAbilities(
        bases=tuple(sorted(report.bases)) or (DEFAULT_BASE,),
        features=tuple(sorted(report.features)),
        shm=most.shm if most else 0,
        scratch=most.scratch if most else 0,
        pids=most.pids if most else 0,
    )


def name_of(slice_: Slice, container: str) -> str:
    if slice_.slot:
        return slice_.ids[0]
    holder = container if slice_.units else ""
    name = SliceName(devices=slice_.ids, profile=slice_.profile, start=slice_.start, units=slice_.units, holder=holder)
    return str(name)


def devices_named(text: str) -> tuple[str, ...]:
    """The devices in which the slice of that name lies, a CPU slot in itself; (): it is no name of one."""
    name = _name(text)
    return name.devices if name is not None else ()


def slice_named(node: Node, text: str) -> Slice | None:
    """The slice of that name; None if the node has no such part."""
    for slot in node.slots:
        if slot.id == text:
            return Slice(
                node=node.name, kind=slot.kind, type=slot.type, ids=(slot.id,), memory=slot.memory,
                ppm=slot.ppm, slot=True,
            )  # fmt: skip
    if (name := _name(text)) is None:
        return None
    found = {gpu.id: gpu for gpu in node.gpus if gpu.id in name.devices}
    return _slice_of(node.name, name, found[name.devices[0]].device) if len(found) == len(name.devices) else None


def _name(text: str) -> SliceName | None:
    try:
        return _parsed(text) if text else None
    except BadInput:
        return None


@lru_cache(maxsize=16_384)
def _parsed(text: str) -> SliceName:
    """A slice's name, of which passes ask again and again."""
    return SliceName.parse(text)


def _slice_of(node: str, name: SliceName, device: Device) -> Slice | None:
    memory, kind, ppm = device.memory, SliceKind.GPU, name.ppm or 0
    if name.profile:
        index = {cut.profile.key: n for n, cut in enumerate(device.cuts)}.get(name.profile)
        if index is None:
            return None
        memory, kind, ppm = device.cuts[index].memory, SliceKind.MIG, round(device.shares[index] * 1_000_000)
    elif name.units:
        memory, kind = device.memory * name.units // SHARE_UNITS, SliceKind.SHARE
    return Slice(
        node=node, kind=kind, type=device.name, ids=name.devices, memory=memory, ppm=ppm,
        profile=name.profile, start=name.start, units=name.units,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IncomingContainer:
    """A container being bound to a slice, by the slice's name."""

    container: str
    node: str
    slice: str
    function: str = ""
    tenant: str = ""
    neighbours: bool = False
    host: HostShare = NO_SHARE
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReportOverlay:
    """The controller's additions to the reports."""

    coming: tuple[IncomingContainer, ...] = ()
    """Binds that no report shows yet; a reported container on the same slice precedes them."""
    closed: Collection[tuple[str, str]] = ()
    """(node, GPU) that accepts nothing new because it is about to change."""
    recut: Mapping[tuple[str, str], Layout] = field(default_factory=dict)
    """(node, GPU) -> the instances that are about to be destroyed or made on it, where nothing else starts."""
    resident: dict[str, frozenset[str]] = field(default_factory=dict)
    """node -> its weights."""
    agreeing: Collection[str] = ()
    """Versions that agree to other tenants on their device."""
    avoiding: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """version -> functions that it avoids."""


@dataclass(frozen=True, kw_only=True)
class _ReadNode:
    """What was made of a node's report."""

    report: NodeReport
    node: Node
    held: tuple[PlacedContainer, ...]
    marks: Mapping[str, tuple[object, ...]]
    """What `held` was made of, beside the hardware, by container."""


class FleetMirror:
    """A report in which nothing of the hardware or the containers' places is new costs next to nothing."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.fleet = Fleet(prices=prices)
        self._known: dict[str, _ReadNode] = {}
        self._holds = ReportedHolds(self.fleet)
        self._overlaid: set[str] = set()
        """Nodes whose description is not only their report's."""
        self._resident: dict[str, frozenset[str]] = {}
        """The weights of nodes that the fleet was told last."""
        self._incoming: dict[str, tuple[IncomingContainer, Node | None, PlacedContainer | None]] = {}
        """What was made of those on their way when they were last told, and of which node."""

    def sync(self, reports: Iterable[NodeReport], overlay: ReportOverlay | None = None, at: float = 0.0) -> Fleet:
        """Make the fleet equal to the reports; any other change to it is undone. `at` is in seconds."""
        told: dict[str, NodeReport | None] = dict.fromkeys(self._known)
        told |= {report.node: report for report in reports}
        return self.update(told, overlay or ReportOverlay(), at)

    def update(self, told: Mapping[str, NodeReport | None], overlay: ReportOverlay, at: float) -> Fleet:
        """The same with the reports of some nodes, None: it is gone. Of all others nothing is new."""
        self._holds.note_foreign()
        described, reported = set[str](), dict[str, Sequence[PlacedContainer]]()
        for name, report in told.items():
            known = self._known.get(name)
            if report is None:
                if known is not None:
                    del self._known[name]
                    self.fleet.remove(name)
                    reported[name] = ()
                continue
            read = self._known[name] = self._read(report, overlay, at)
            if known is None or known.node is not read.node:
                described.add(name)
            if known is None or known.held is not read.held:
                reported[name] = read.held
        overlaid = {node for node, _ in (*overlay.closed, *overlay.recut)} & self._known.keys()
        anew = sorted(described | overlaid | ((self._overlaid | self._moved_residents(overlay)) & self._known.keys()))
        for name in anew:
            self.fleet.put(_with_overlay(self._known[name].node, overlay))
        self._holds.described(anew)
        self._overlaid = overlaid
        if reported:
            self._holds.report(reported)
        self._incoming = {each.container: self._placed(each) for each in overlay.coming}
        self._holds.settle({name: held for name, (_, _, held) in self._incoming.items()})
        return self.fleet

    def _moved_residents(self, overlay: ReportOverlay) -> set[str]:
        """The nodes whose weights are others than the fleet was told."""
        before, self._resident = self._resident, overlay.resident
        nodes = before.keys() | self._resident.keys()
        return {
            node for node in nodes if before.get(node, NOTHING_RESIDENT) != self._resident.get(node, NOTHING_RESIDENT)
        }

    def _read(self, report: NodeReport, overlay: ReportOverlay, at: float) -> _ReadNode:
        known = self._known.get(report.node)
        marks, is_same = _marks_of(report, overlay), known is not None and is_same_node(known.report, report)
        if known is not None and is_same and known.marks == marks:
            return _ReadNode(report=report, node=known.node, held=known.held, marks=marks)
        node = known.node if known is not None and is_same else node_of(report)
        if known is not None and node == known.node:  # who holds which slice is part of a report, not of the node
            node = known.node
        as_before: dict[str, PlacedContainer] = {}
        if known is not None and node is known.node:
            before = known.marks
            as_before = {
                one.container: one for one in known.held if before.get(one.container) == marks.get(one.container, ())
            }
        held = tuple(self._held(report, node, overlay, as_before, at))
        return _ReadNode(report=report, node=node, held=held, marks=marks)

    def _held(
        self,
        report: NodeReport,
        node: Node,
        overlay: ReportOverlay,
        as_before: Mapping[str, PlacedContainer],
        at: float,
    ) -> Iterator[PlacedContainer]:
        """The containers of a report; of those `as_before` nothing is new."""
        containers = {container.id: container for container in report.containers}
        on = {part.id: part.container for part in report.slices if part.container}
        on |= {i.slice: i.container for device in report.devices for i in device.instances if i.container}
        # Each of several whole devices lists the container, which holds them as one slice.
        placed = {
            name for name, each in containers.items() if name in as_before or slice_named(node, each.slice) is not None
        }
        on = {name: holder for name, holder in on.items() if holder not in placed}
        on |= {container.slice: container.id for container in report.containers}
        for name, holder in on.items():
            if holder in as_before and name == containers[holder].slice:
                yield as_before[holder]
                continue
            if (slice_ := slice_named(node, name)) is None:
                continue
            if (container := containers.get(holder)) is None:
                yield PlacedContainer(container=holder, slice=slice_, since=self._holds.since(holder, at))
                continue
            yield PlacedContainer(
                container=holder,
                slice=slice_,
                function=f"{container.tenant}:{container.app}.{container.function}",
                tenant=container.tenant,
                since=self._holds.since(holder, at - container.age_s),
                neighbours=container.version in overlay.agreeing,
                host=container.host,
                avoid=overlay.avoiding.get(container.version, ()),
            )

    def _placed(self, each: IncomingContainer) -> tuple[IncomingContainer, Node | None, PlacedContainer | None]:
        known, made = self._known.get(each.node), self._incoming.get(each.container)
        node = known.node if known else None
        if made is not None and made[1] is node and made[0] == each:
            return made
        slice_ = slice_named(node, each.slice) if node else None
        if slice_ is None:
            return each, node, None
        held = PlacedContainer(
            container=each.container,
            slice=slice_,
            function=each.function,
            tenant=each.tenant,
            neighbours=each.neighbours,
            host=each.host,
            avoid=each.avoid,
        )
        return each, node, held


def is_same_node(one: NodeReport, other: NodeReport) -> bool:
    """Whether `node_of` makes the same of both."""
    return (
        (one.slices is other.slices or one.slices == other.slices)
        and (one.devices is other.devices or one.devices == other.devices)
        and (one.host, one.draining, one.spot) == (other.host, other.draining, other.spot)
        and (one.region, one.zone, one.pool) == (other.region, other.zone, other.pool)
        and (one.bases, one.features, one.ceilings) == (other.bases, other.features, other.ceilings)
        and one.environments == other.environments
        and (one.blanks == other.blanks or _ready_bases(one) == _ready_bases(other))
        and (one.containers is other.containers or parked_places(one) == parked_places(other))
    )


def _marks_of(report: NodeReport, overlay: ReportOverlay) -> Mapping[str, tuple[object, ...]]:
    agrees, avoids = overlay.agreeing, overlay.avoiding
    return {
        c.id: (c.version, c.tenant, c.app, c.function, c.slice, c.host, c.version in agrees, avoids.get(c.version))
        for c in report.containers
    }


def _with_overlay(node: Node, overlay: ReportOverlay) -> Node:
    resident = overlay.resident.get(node.name, NOTHING_RESIDENT)
    gpus = tuple(_gpu_with_overlay(node.name, gpu, overlay) for gpu in node.gpus)
    is_same = resident <= node.resident and all(gpu is known for gpu, known in zip(gpus, node.gpus, strict=True))
    return node if is_same else replace(node, gpus=gpus, resident=node.resident | resident)


def _gpu_with_overlay(node: str, gpu: Gpu, overlay: ReportOverlay) -> Gpu:
    if (node, gpu.id) in overlay.closed:
        return replace(gpu, kept=CHANGING)
    recut = overlay.recut.get((node, gpu.id), ())
    return replace(gpu, recut=recut) if recut else gpu
