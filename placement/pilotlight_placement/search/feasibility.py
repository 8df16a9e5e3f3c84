"""Whether a fleet could hold an ask if it were all free and cut as the ask needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import Option
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers
from pilotlight_placement.hardware.node import Gpu
from pilotlight_placement.search.open_units import serving_on
from pilotlight_placement.search.short_hosts import can_hold, short_ever


@dataclass(frozen=True, kw_only=True)
class Feasibility:
    """What keeps an ask from having a place."""

    is_feasible: bool
    """Some node has what a container needs, in use or not."""
    devices: int
    """Devices and slots that would serve it as they are, if they were free."""
    to_switch: int = 0
    """GPUs that would serve it in the other MIG mode; counted only if `devices` is 0."""
    idle_to_switch: int = 0
    """The idle ones among them."""


def feasibility(fleet: Fleet, ask: Ask, offers: Offers) -> Feasibility:
    """The feasibility of a refused ask, whose offers' totals have been counted."""
    short = short_ever(fleet, ask).either
    devices = offers.totals.eligible - sum([serving_on(group, short & group.nodes) for group in offers.by_group])
    single = all(choice.count == 1 for choice in ask.choices)
    if not (devices > 0 and single) and not _holds(fleet, ask, offers):
        return Feasibility(is_feasible=False, devices=devices)
    idle, total = _in_other_mode(offers) if devices <= 0 else (0, 0)
    return Feasibility(is_feasible=True, devices=devices, to_switch=total, idle_to_switch=idle)


def could_hold(fleet: Fleet, ask: Ask) -> bool:
    """Whether some node has what a container needs, in use or not.

    A GPU whose MIG mode is switched without a reset counts in both modes; draining nodes and withdrawn devices do not
    count.
    """
    return _holds(fleet, ask, fleet.offers(ask))


def idle_in_other_mode(fleet: Fleet, ask: Ask) -> int:
    """Idle GPUs that would serve an ask after a switch of their MIG mode that needs no reset."""
    return _in_other_mode(fleet.offers(ask))[0]


def _in_other_mode(offers: Offers) -> tuple[int, int]:
    idle = total = 0
    for group in offers.switchable:
        if group.total:
            idle += len(group.states.get(0, ())) if group.kind.mig else group.open[0]
            total += group.total
    return idle, total


def _holds(fleet: Fleet, ask: Ask, offers: Offers) -> bool:
    return any(_on_some_node(fleet, ask, group, option) for group, option in _in_any_mode(offers))


def _in_any_mode(offers: Offers) -> Iterator[tuple[DeviceGroup, Option]]:
    for group in offers.groups():
        options = tuple(offer.option for offer in offers.by_group.get(group, ())) or offers.switched(group)
        if options and group.total:
            # The option with the fewest devices fits wherever another one does.
            yield group, min(options, key=lambda option: option.count)


def _on_some_node(fleet: Fleet, ask: Ask, group: DeviceGroup, option: Option) -> bool:
    for rank in group.nodes:
        if not can_hold(fleet.by_rank[rank].node, ask):
            continue
        if option.count == 1 or _alike(fleet, group, rank) >= option.count:
            return True
    return False


def _alike(fleet: Fleet, group: DeviceGroup, rank: int) -> int:
    """The node's devices of the group's kind, as they are or after a switch of MIG mode."""
    device = group.device
    return sum(
        unit.serves
        and isinstance(unit.gpu, Gpu)
        and device is not None
        and unit.gpu.device.name == device.name
        and (unit.gpu.mig == group.kind.mig or device.online_mig)
        for unit in fleet.by_rank[rank].units
    )
