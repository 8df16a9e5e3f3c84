"""What the containers of each tenant hold, and what the fleet has in all: memory and compute of GPUs, and CPU slots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.occupancy import NodeOccupancy
from pilotlight_placement.fleet.offers import Offers
from pilotlight_placement.hardware.node import PlacedContainer, Slice


class HeldResources(NamedTuple):
    """Amounts of what tenants share."""

    vram: int = 0
    """MiB."""
    compute: int = 0
    """Millionths of a GPU."""
    slots: int = 0
    """CPU slots."""

    def plus(self, other: HeldResources, times: int = 1) -> HeldResources:
        """The sum with `times` of the other."""
        return HeldResources(
            self.vram + times * other.vram, self.compute + times * other.compute, self.slots + times * other.slots
        )


NOTHING_HELD = HeldResources()


def resources_of(slice_: Slice) -> HeldResources:
    """What a slice takes of the fleet."""
    count = len(slice_.ids)
    if slice_.kind is SliceKind.CPU:
        return HeldResources(slots=count)
    return HeldResources(vram=count * slice_.memory, compute=count * slice_.ppm)


def resources_asked(offers: Offers) -> HeldResources:
    """What an ask takes at its first choice, on the cheapest slice; nothing if no slice would do."""
    if not offers.choices:
        return NOTHING_HELD
    option = offers.choices[0].levels[0][1][0].option
    if option.kind is SliceKind.CPU:
        return HeldResources(slots=option.count)
    return HeldResources(vram=option.count * option.memory, compute=option.count * option.ppm)


def resources_in(groups: Iterable[DeviceGroup]) -> HeldResources:
    """What the devices and slots that serve have in all."""
    found = NOTHING_HELD
    for group in groups:
        found = found.plus(_each(group), group.total)
    return found


def _each(group: DeviceGroup) -> HeldResources:
    if (slot := group.slot) is not None:
        is_cpu = slot.kind is SliceKind.CPU
        return HeldResources(slots=1) if is_cpu else HeldResources(vram=slot.memory, compute=slot.ppm)
    return HeldResources(vram=group.part.memory, compute=WHOLE_DEVICE)


class _Sums:
    """Of one tenant. Not a tuple: they change with each container."""

    __slots__ = ("compute", "slots", "vram")

    def __init__(self) -> None:
        self.vram = self.compute = self.slots = 0

    def change(self, slice_: Slice, times: int) -> bool:
        """Add a slice so many times; whether anything is left."""
        count = times * len(slice_.ids)
        if slice_.kind is SliceKind.CPU:
            self.slots += count
        else:
            self.vram += count * slice_.memory
            self.compute += count * slice_.ppm
        return bool(self.vram or self.compute or self.slots)


class TenantHoldings:
    """Sums by tenant, kept with each change of the fleet. What is on a draining node leaves, and does not count."""

    def __init__(self) -> None:
        self._held: dict[str, _Sums] = {}
        self._all = _Sums()

    @property
    def total(self) -> HeldResources:
        """What all tenants hold."""
        return HeldResources(self._all.vram, self._all.compute, self._all.slots)

    def of(self, tenant: str) -> HeldResources:
        """What a tenant holds."""
        sums = self._held.get(tenant)
        return NOTHING_HELD if sums is None else HeldResources(sums.vram, sums.compute, sums.slots)

    def tenants(self) -> Iterable[str]:
        """Those that hold something."""
        return self._held.keys()

    def add(self, held: PlacedContainer, place: NodeOccupancy) -> None:
        """Count a container that holds a slice of a node."""
        self._change(held, place, 1)

    def remove(self, held: PlacedContainer, place: NodeOccupancy) -> None:
        """Count it no more."""
        self._change(held, place, -1)

    def _change(self, held: PlacedContainer, place: NodeOccupancy, times: int) -> None:
        if place.node.draining:
            return
        sums = self._held.get(held.tenant)
        if sums is None:
            sums = self._held[held.tenant] = _Sums()
        self._all.change(held.slice, times)
        if not sums.change(held.slice, times):
            del self._held[held.tenant]
