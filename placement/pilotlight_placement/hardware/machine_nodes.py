"""The nodes that machines of a pool would be: what is not there yet, as if it were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotlight_core.model.api.pools.pool_terms import MachineType, PoolProvider
from pilotlight_core.model.messages.node_messages import HostShare, SliceKind
from pilotlight_core.model.records.pools import PoolRecord
from pilotlight_core.model.units import WHOLE_DEVICE, split_evenly
from pilotlight_core.model.versions.manifest_codec import FEATURES
from pilotlight_placement.hardware.gpu_text import read_gpus
from pilotlight_placement.hardware.node import Domain, Gpu, Node, NodeAbilities, Slot

CPU = "CPU"
GIB = 2**30
RESERVE_PART, MOST_RESERVE_PART = 20, 4
"""As agents keep of a host for the platform, unless they are told otherwise."""


def machine_node(pool: PoolRecord, type_: MachineType, *, region: str, zone: str, name: str) -> Node:
    """The node of one machine, with nothing on it."""
    terms = pool.terms
    abilities = NodeAbilities(bases=tuple(sorted(terms.bases)), features=tuple(sorted(FEATURES)))
    return Node(
        name=name,
        domain=Domain(region=region, zone=zone, pool=pool.name, spot=terms.is_spot, abilities=abilities),
        gpus=tuple(_gpus(type_, is_fake=terms.provider is PoolProvider.LOCAL)),
        slots=tuple(_slots(type_)),
        host=_host(type_),
    )


def pool_nodes(pools: Iterable[PoolRecord], region: str, zone: str) -> list[Node]:
    """A node of each kind that pools may have, in each of their zones."""
    return [
        machine_node(pool, type_, region=region, zone=where, name=f"{pool.name}.{type_.name}.{where}")
        for pool in pools
        if pool.is_open and pool.terms.most_nodes
        for type_ in pool.terms.types
        for where in pool.terms.zones or (zone,)
    ]


def _gpus(type_: MachineType, *, is_fake: bool) -> Iterator[Gpu]:
    number = 0
    for kind in read_gpus(type_.gpus):
        for _ in range(kind.count):
            yield Gpu(id=f"gpu-{number}", device=kind.device, mig=kind.mig, shareable=kind.shareable, software=is_fake)
            number += 1


def _slots(type_: MachineType) -> Iterator[Slot]:
    count = max(1, int(type_.cores))
    memory = int(type_.memory_gib * 1024) // count
    for number, ppm in enumerate(split_evenly(WHOLE_DEVICE, count)):
        yield Slot(id=f"cpu-{number}", kind=SliceKind.CPU, type=CPU, memory=memory, ppm=ppm)


def _host(type_: MachineType) -> HostShare | None:
    if not type_.memory_gib:
        return None
    memory = int(type_.memory_gib * GIB)
    reserve = min(memory // MOST_RESERVE_PART, GIB + memory // RESERVE_PART)
    return HostShare(cpu_millis=int(type_.cores * 1000), memory=memory - reserve)
