"""The slices of a node and the containers on them, as the agent itself counts them.

Two containers are on one device at a time only where both are on MIG instances, or both have shares that fit together
and are one tenant's, or of versions that agree to neighbours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import msgspec

from pilotlight_core.model.devices import MEMORY_DEVICE, SHARE_UNITS, WARM_PRICE, DeviceReport, MigPlacement, SliceName
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.device_commands import Cut, DeviceCommand
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.metering.usage_metering import Metering


class SliceAllocation(msgspec.Struct, frozen=True, kw_only=True):
    name: SliceName
    part: SliceReport
    container: str
    tenant: str
    neighbours: bool = False
    """Whether other tenants may have shares beside its own."""
    wants_blank: bool = True
    """Whether the container may take the blank that is there: it starts, and does not come back from its memory."""


class ParkedPart(msgspec.Struct, frozen=True, kw_only=True):
    """What a parked container has: a part of the host's memory, and the way back to its GPU."""

    memory: SliceReport
    left: SliceName | None = None
    """The slice to which it returns; None: any CPU slot."""
    tenant: str


class Slices:
    def __init__(self, devices: Devices, metering: Metering, warm_memory: int = 0) -> None:
        """`warm_memory`: bytes of the host for what is parked."""
        self._warm_memory = warm_memory
        self._devices = devices
        self._metering = metering
        self._holds: dict[str, SliceAllocation] = {}
        """By slice."""
        self._parked: dict[str, ParkedPart] = {}
        """By container."""
        self.changed: Callable[[], None] = ignore_change
        """Called when slices may have come, gone, been taken or become free."""
        self.sync()

    @property
    def cpu_slots(self) -> int:
        """The number of CPU slots, free or taken."""
        return sum(part.kind is SliceKind.CPU for part in self._devices.inventory())

    @property
    def parked(self) -> set[str]:
        """The parked containers."""
        return set(self._parked)

    @property
    def held(self) -> dict[str, str]:
        """Slice id -> id of the container on it."""
        return {slice_id: hold.container for slice_id, hold in self._holds.items()}

    def refusal(self, slice_id: str, tenant: str, *, neighbours: bool = False) -> str:
        """Why a tenant's container cannot be bound there; "" if it can."""
        try:
            name = SliceName.parse(slice_id)
        except BadInput:
            return "no_such_slice"
        if why := conflict(name, tenant, self._holds.values(), neighbours=neighbours):
            return why
        if self._devices.part(name) is None:
            return "no_such_slice"
        withdrawn = self._devices.withdrawn()
        return "slice_withdrawn" if any(device in withdrawn for device in name.devices) else ""

    def take(
        self, slice_id: str, container: str, tenant: str, *, neighbours: bool = False, wants_blank: bool = True
    ) -> SliceReport:
        """Give a container a slice that `refusal` has not refused; raises LookupError if it is gone."""
        name = SliceName.parse(slice_id)
        part = self._devices.part(name)
        if part is None:
            raise LookupError(slice_id)
        hold = SliceAllocation(
            name=name, part=part, container=container, tenant=tenant, neighbours=neighbours, wants_blank=wants_blank
        )
        self._holds[slice_id] = hold
        self.sync()
        return part

    def release(self, slice_id: str) -> None:
        del self._holds[slice_id]
        self.sync()

    def park(self, slice_id: str, size: int) -> SliceReport:
        """Give back the slice of a container, which leaves it for `size` bytes of the host; the part to meter."""
        hold = self._holds.pop(slice_id)
        # A GiB beyond: parts are rounded up, and must not be more than the whole.
        ppm = max(1, size * WHOLE_DEVICE // (self._warm_memory + 2**30))
        part = SliceReport(
            id=f"parked.{hold.container}", kind=SliceKind.CPU, device=MEMORY_DEVICE, ppm=ppm, price=WARM_PRICE,
            memory=size, container=hold.container,
        )  # fmt: skip
        left = None if hold.part.kind is SliceKind.CPU else hold.name
        self._parked[hold.container] = ParkedPart(memory=part, left=left, tenant=hold.tenant)
        self.sync()
        return part

    def unpark(self, container: str) -> None:
        """A parked container has left its memory, of which nothing is metered for it any more."""
        if self._parked.pop(container, None) is not None:
            self.sync()

    def in_the_way(self, slice_id: str, tenant: str) -> list[str]:
        """The parked containers of other tenants on a slice's GPUs, where nobody may have one beside them."""
        try:
            name = SliceName.parse(slice_id)
        except BadInput:
            return []
        return [
            container
            for container, parked in self._parked.items()
            if parked.left is not None and parked.tenant != tenant and _overlap(parked.left, name)
        ]

    def parked_under(self, command: DeviceCommand) -> list[str]:
        """The parked containers whose way back a command would destroy."""
        return [
            container
            for container, parked in self._parked.items()
            if parked.left is not None
            and command.device in parked.left.devices
            and (not isinstance(command, Cut) or _placement(parked.left) in command.destroy)
        ]

    def command(self, command: DeviceCommand) -> str:
        """Begin to cut a device, or return why not ("" is yes)."""
        busy = [slice_id for slice_id, hold in self._holds.items() if command.device in hold.name.devices]
        parked = (each.left for each in self._parked.values() if each.left is not None)
        busy += [str(name) for name in parked if command.device in name.devices and str(name) not in busy]
        answer = self._devices.command(command, busy)
        self.sync()
        return answer

    def sync(self) -> None:
        prices = {report.id: report.price for report in self._devices.reports({})}
        if self._warm_memory:
            prices[MEMORY_DEVICE] = WARM_PRICE
        self._metering.recut(self._parts(), prices)
        self.changed()

    # -- blanks -------------------------------------------------------------------------------------------------

    def free_gpus(self) -> list[SliceReport]:
        """The GPUs and MIG instances on which a container could be bound now."""
        return [part for part in self._devices.inventory() if self._is_free_gpu(part)]

    def keeps_blank(self, slice_id: str) -> bool:
        """Whether a blank on a GPU may stay: it is free, or was taken for a container that has not asked for it yet."""
        name = SliceName.parse(slice_id)
        part = self._devices.part(name)
        if part is None:
            return False
        holds = list(self._on(name))
        if not holds:
            return self._is_free_gpu(part)
        return any(
            hold.wants_blank and (hold.part.id == slice_id or (hold.name.units and hold.part.device == slice_id))
            for hold in holds
        )

    def mark_blank(self, slice_id: str, *, is_there: bool) -> None:
        """Meter a GPU as a blank's, or as nobody's again; what a container has is metered as its own."""
        if not any(self._on(SliceName.parse(slice_id))):
            with contextlib.suppress(KeyError):  # it was cut away
                self._metering.mark_blank(slice_id, is_there=is_there)

    def _is_free_gpu(self, part: SliceReport) -> bool:
        if part.kind not in (SliceKind.GPU, SliceKind.MIG) or {part.id, part.device} & self._devices.withdrawn().keys():
            return False
        return not conflict(SliceName.parse(part.id), "", self._holds.values())

    def _on(self, name: SliceName) -> Iterable[SliceAllocation]:
        """The allocations beside which a slice cannot be given whole."""
        return (hold for hold in self._holds.values() if conflict(name, "", (hold,)))

    # -- for others ---------------------------------------------------------------------------------------------

    def reports(self) -> tuple[SliceReport, ...]:
        """The slices on offer with their containers; a withdrawn one only while a container is still on it."""
        withdrawn = self._devices.withdrawn()
        on = {device: hold.container for hold in self._holds.values() for device in hold.name.devices}
        holders = {slice_id: hold.container for slice_id, hold in self._holds.items()}
        shared = {device for hold in self._holds.values() if hold.name.units for device in hold.name.devices}
        found = []
        for part in self._devices.inventory():
            whole = part.id == part.device
            container = on.get(part.id, "") if whole else holders.get(part.id, "")
            if part.id not in shared and (container or not {part.id, part.device} & withdrawn.keys()):
                found.append(msgspec.structs.replace(part, container=container))
        shares = [hold for hold in self._holds.values() if hold.name.units]
        return (*found, *(msgspec.structs.replace(hold.part, container=hold.container) for hold in shares))

    def devices(self) -> tuple[DeviceReport, ...]:
        return tuple(self._devices.reports(self.held))

    def check_integrity(self) -> None:
        """Raise AssertionError if two containers are on one slice."""
        for slice_id, hold in self._holds.items():
            others = [other for name, other in self._holds.items() if name != slice_id]
            if conflict(hold.name, hold.tenant, others, neighbours=hold.neighbours):
                raise AssertionError(f"{slice_id} is held twice")

    def _parts(self) -> list[SliceReport]:
        """The parts to meter: held ones, then free ones, of each device no more than the whole.

        So a container's part is metered even after an operator has cut its GPU by hand.
        """
        held = [part for hold in self._holds.values() for part in _wholes(hold)]
        kept = {part.id: part for part in held}
        left = dict.fromkeys((part.device for part in held), WHOLE_DEVICE)
        for part in held:
            left[part.device] -= part.ppm
        shared = {part.device for part in held if part.kind is SliceKind.SHARE}
        free = []
        for part in self._devices.inventory():
            if part.id in kept or part.device in shared or part.ppm > left.setdefault(part.device, WHOLE_DEVICE):
                continue
            left[part.device] -= part.ppm
            free.append(part)
        return [*free, *kept.values(), *(parked.memory for parked in self._parked.values())]


def _placement(name: SliceName) -> MigPlacement:
    return MigPlacement(start=name.start, profile=name.profile)


def _overlap(one: SliceName, other: SliceName) -> bool:
    """Whether two slices have a part of a device in common."""
    if one.profile and other.profile and one != other:
        return False
    return bool(set(one.devices) & set(other.devices))


def ignore_change() -> None:
    """The `changed` of slices without blanks."""


def _wholes(hold: SliceAllocation) -> Iterable[SliceReport]:
    if len(hold.name.devices) == 1:
        return (hold.part,)
    return (
        msgspec.structs.replace(hold.part, id=device, device=device, ppm=WHOLE_DEVICE) for device in hold.name.devices
    )


def conflict(name: SliceName, tenant: str, holds: Iterable[SliceAllocation], *, neighbours: bool = False) -> str:
    """Why a slice cannot be given beside those that are held; "" if it can."""
    used = 0
    for hold in holds:
        other = hold.name
        if not set(name.devices) & set(other.devices):
            continue
        if name == other or not ((name.profile and other.profile) or (name.units and other.units)):
            return "slice_taken"
        if name.units and hold.tenant != tenant and not (neighbours and hold.neighbours):
            return "other_tenant"
        used += other.units
    return "slice_taken" if name.units + used > SHARE_UNITS else ""
