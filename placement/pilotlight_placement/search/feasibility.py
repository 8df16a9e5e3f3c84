"""Whether a request could ever be met by a fleet, if all of it were free and cut as the request would have it."""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import refused_domain
from pilotlight_placement.fleet.options import NoOption, Option, options, slot_options
from pilotlight_placement.hardware.node import Gpu


def could_hold(fleet: Fleet, ask: Ask) -> bool:
    """Whether some node has what a container needs, whoever uses it now.

    A GPU whose MIG mode is switched without a reset counts in both modes; nodes that drain and devices that are
    withdrawn do not count.
    """
    return any(_on_some_node(fleet, ask, cell, option) for cell, option in _ways(fleet, ask))


def idle_in_other_mode(fleet: Fleet, ask: Ask) -> tuple[int, int]:
    """GPUs that could hold it but for their MIG mode, which is switched without a reset: how many are idle, and all."""
    idle = total = 0
    for cell in fleet.cells.values():
        device, mig = cell.device, cell.kind.mig
        if device is None or not device.online_mig or not cell.total or refused_domain(ask, cell.domain):
            continue
        if not isinstance(options(ask, device, mig=not mig, shareable=False), NoOption):
            idle += len(cell.states.get(0, ())) if mig else cell.open[0]
            total += cell.total
    return idle, total


def _ways(fleet: Fleet, ask: Ask) -> Iterator[tuple[DeviceGroup, Option]]:
    for cell in fleet.cells.values():
        if not cell.total or refused_domain(ask, cell.domain):
            continue
        made: list[Option] | NoOption = []
        if cell.slot is not None:
            made = slot_options(ask, cell.slot)
        elif cell.device is not None:
            made = options(ask, cell.device, mig=cell.kind.mig, shareable=cell.kind.shareable)
            if isinstance(made, NoOption) and cell.device.online_mig:
                made = options(ask, cell.device, mig=not cell.kind.mig, shareable=False)
        if not isinstance(made, NoOption):
            # The one that needs fewest devices: whatever has room for more has room for it.
            yield cell, min(made, key=lambda option: option.count)


def _on_some_node(fleet: Fleet, ask: Ask, cell: DeviceGroup, option: Option) -> bool:
    for rank in cell.nodes:
        place = fleet.by_rank[rank]
        if place.node.host_memory and place.node.host_memory < ask.memory:
            continue
        if option.count == 1 or _alike(fleet, cell, rank) >= option.count:
            return True
    return False


def _alike(fleet: Fleet, cell: DeviceGroup, rank: int) -> int:
    """The node's devices that are as the cell's, or could be after a switch of MIG mode."""
    device = cell.device
    return sum(
        unit.serves
        and isinstance(unit.gpu, Gpu)
        and device is not None
        and unit.gpu.device.name == device.name
        and (unit.gpu.mig == cell.kind.mig or device.online_mig)
        for unit in fleet.by_rank[rank].units
    )
