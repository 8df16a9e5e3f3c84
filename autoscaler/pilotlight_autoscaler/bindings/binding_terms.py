"""What is written of a container before it is bound. Pure."""

from __future__ import annotations

from pilotlight_core.model.devices import SliceName, cores_of
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import Bind, HostShare, NodeReport
from pilotlight_core.model.records.nodes import NodeLabels
from pilotlight_core.model.spec import VersionRecord, max_units_of, tags_of
from pilotlight_core.model.units import WHOLE_DEVICE


def binding_of(
    bind: Bind, record: VersionRecord, report: NodeReport | None, labels: NodeLabels | None = None
) -> Binding | None:
    """The binding of a container on a node that reports so; None if the node has no such slice.

    `labels`: on record of the node, if it has joined.
    """
    terms = slice_terms(report, bind.slice) if report is not None else None
    if report is None or terms is None:
        return None
    ppm, price = terms
    core_ppm, gib_ppm = host_terms(bind.host, ppm, price)
    return Binding(
        container=bind.container,
        node=report.node,
        version=bind.version,
        tenant=bind.tenant,
        function=bind.function,
        slice=bind.slice,
        ppm=ppm,
        price=price,
        slots=record.spec.slots,
        core_ppm=core_ppm,
        gib_ppm=gib_ppm,
        tags=tags_of(record.spec),
        max_units=max_units_of(record.spec),
        region=labels.region if labels is not None else "",
        purchase=labels.purchase if labels is not None else "",
    )


def host_terms(host: HostShare, ppm: int, price: str) -> tuple[int, int]:
    """What is paid of a host beside a slice: millionths of a core, without those of a CPU slot, and of a GiB.

    A slot of a 24th is 41,666 ppm: what its cores lack of whole ones by that is no promise beside it.
    """
    cores = cores_of(price)
    beside = max(0, host.cpu_millis * 1_000 - cores * ppm)
    return beside if beside >= cores else 0, host.memory * 1_000_000 // 2**30


def slice_terms(report: NodeReport, slice_id: str) -> tuple[int, str] | None:
    """The ppm of each device of a slice, and the devices' price id; None if the node has no such slice."""
    part = next((part for part in report.slices if part.id == slice_id), None)
    if part is not None:
        return part.ppm, part.price
    try:
        name = SliceName.parse(slice_id)
    except BadInput:
        return None
    prices = {part.device: part.price for part in report.slices} | {gpu.id: gpu.price for gpu in report.devices}
    found = {prices.get(device, "") for device in name.devices}
    if len(found) != 1 or "" in found:
        return None
    ppm = name.ppm
    if name.profile:
        instances = [one for gpu in report.devices for one in gpu.instances if one.slice == slice_id]
        ppm = instances[0].ppm if instances else None
    return (min(ppm, WHOLE_DEVICE), found.pop()) if ppm is not None else None
