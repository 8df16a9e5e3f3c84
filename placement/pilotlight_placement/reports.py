"""From what nodes report to the fleet: a `Mirror` makes its fleet agree with them, and changes only what differs.

Agents offer slices that exist: CPU slots, whole GPUs, and parts that were cut beforehand. They are given as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pilotlight_core.model.messages import NodeReport, SliceKind, SliceReport
from pilotlight_placement.ask import CPU, MIB
from pilotlight_placement.catalogue import standard
from pilotlight_placement.fleet import Fleet
from pilotlight_placement.node import Domain, Held, Node, Slice, Slot


def slot_of(part: SliceReport) -> Slot:
    """A reported slice as a slot; its type is the catalogue's name, which tells memory sizes apart."""
    memory = part.memory // MIB
    if part.kind is SliceKind.CPU:
        return Slot(id=part.id, kind=part.kind, type=CPU, memory=memory, ppm=part.ppm)
    # Of a part of a GPU the size of the whole is not known, so its name is taken as it is.
    whole = memory if part.kind is SliceKind.GPU else 0
    kind = part.gpu_type.upper()
    name = standard().device(kind, memory).name if whole else kind
    return Slot(id=part.id, kind=part.kind, type=name, memory=memory, ppm=part.ppm)


def node_of(report: NodeReport) -> Node:
    """A report's node. The host's memory is what its CPU slots share; one without any does not say."""
    return Node(
        name=report.node,
        domain=Domain(region=report.region, zone=report.zone),
        slots=tuple({part.id: slot_of(part) for part in report.slices}.values()),
        host_memory=sum(part.memory for part in report.slices if part.kind is SliceKind.CPU),
        draining=report.draining,
    )


def slice_of(node: str, slot: Slot) -> Slice:
    """The slice that a slot is."""
    return Slice(node=node, kind=slot.kind, type=slot.type, ids=(slot.id,), memory=slot.memory, ppm=slot.ppm, slot=True)


def held_of(report: NodeReport, node: Node) -> list[Held]:
    """Who runs on which of the node's slices, by the node's own word."""
    containers = {container.id: container for container in report.containers}
    on = {part.id: part.container for part in report.slices}
    found = []
    for slot in node.slots:
        if not on[slot.id]:
            continue
        held = Held(container=on[slot.id], slice=slice_of(node.name, slot))
        if (container := containers.get(on[slot.id])) is not None:
            function = f"{container.tenant}:{container.app}.{container.function}"
            held = replace(held, function=function, tenant=container.tenant)
        found.append(held)
    return found


class Mirror:
    """A fleet that is kept as its nodes report themselves."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self._known: dict[str, tuple[NodeReport, Node, list[Held]]] = {}

    def sync(self, reports: Iterable[NodeReport], coming: Mapping[tuple[str, str], Held]) -> Fleet:
        """Make the fleet what the reports say, with containers that were sent and are not reported yet.

        `coming` is by (node, slot id); where a report shows somebody on the slot, the report counts. What else was
        changed in the fleet since the last time is undone.
        """
        self._known = {report.node: self._read(report) for report in reports}
        for name in [name for name in self.fleet.places if name not in self._known]:
            self.fleet.remove(name)
        for _, node, _ in self._known.values():
            self.fleet.put(node)
        self._hold_exactly(self._truth(coming))
        return self.fleet

    def _read(self, report: NodeReport) -> tuple[NodeReport, Node, list[Held]]:
        known = self._known.get(report.node)
        if known is not None and known[0] is report:
            return known
        node = node_of(report)
        return report, node, held_of(report, node)

    def _truth(self, coming: Mapping[tuple[str, str], Held]) -> dict[tuple[str, str], Held]:
        truth = {(held.slice.node, held.slice.ids[0]): held for _, _, every in self._known.values() for held in every}
        for (name, slot_id), held in coming.items():
            if (name, slot_id) in truth or name not in self._known:
                continue
            for slot in self._known[name][1].slots:
                if slot.id == slot_id:
                    truth[name, slot_id] = replace(held, slice=slice_of(name, slot))
        return truth

    def _hold_exactly(self, truth: Mapping[tuple[str, str], Held]) -> None:
        wanted: dict[str, Held] = {}
        for (node, slot), held in truth.items():
            # Two nodes may speak of one container while one of them is behind: both of their slots are taken.
            name = held.container if held.container not in wanted else f"{held.container} {node}/{slot}"
            wanted[name] = replace(held, container=name) if name != held.container else held
        for name, held in list(self.fleet.held.items()):
            if wanted.get(name) != held:
                self.fleet.release(name)
        for name, held in wanted.items():
            if name not in self.fleet.held:
                self.fleet.hold(held)
