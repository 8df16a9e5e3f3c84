"""The used part of each device or slot, and the units of a node: the changing part of the fleet.

A device in MIG mode has a mask of its memory slices; another one a number of free thousandths; a slot is free or not.
`Fleet` takes a unit out of its group's index before a change and puts it back after it.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.node_messages import HostShare, SliceKind
from pilotlight_placement.fleet.device_classes import DeviceGroup, InstanceKey
from pilotlight_placement.fragmentation.host_fragmentation import NOTHING_KNOWN, HostRoom, host_room
from pilotlight_placement.hardware.node import SHARE_UNITS, Gpu, Node, ParkedPlace, PlacedContainer, Slot

NO_CUTS: frozenset[InstanceKey] = frozenset()
WHOLE: InstanceKey = (-1, 0)
"""Instead of a MIG instance: all of a device, or a slot."""
ReadyPlace = tuple[InstanceKey, str]
"""Where on a unit a blank is ready, and of which base environment."""
NO_BLANKS: frozenset[ReadyPlace] = frozenset()


class Unit:
    __slots__ = (
        "agrees",
        "free",
        "gpu",
        "group",
        "held",
        "id",
        "idle",
        "mask",
        "media",
        "node",
        "parked",
        "rank",
        "ready",
        "shut",
        "slot",
        "taken",
        "tenant",
    )

    def __init__(self, node: NodeOccupancy, rank: int, group: DeviceGroup, part: Gpu | Slot) -> None:
        self.node = node
        self.rank = rank
        self.group = group
        self.gpu = part if isinstance(part, Gpu) else None
        self.slot = part if isinstance(part, Slot) else None
        self.id = part.id
        self.held: dict[str, PlacedContainer] = {}
        self.taken = self.mask = 0
        """Memory slices in MIG mode: those that containers have; and with them those that a plan cuts anew."""
        self.free = SHARE_UNITS
        """Free thousandths, otherwise; for a slot all or none."""
        self.tenant = ""
        """The tenant of its shares; "" for none or several."""
        self.agrees = False
        self.idle: frozenset[InstanceKey] = NO_CUTS
        self.shut = bool(self.gpu and self.gpu.kept)
        self.media = False
        """Whether an instance in use has its video engines."""
        self.ready, self.parked = self.warmth_in(node.node)
        """Where blanks are ready, and what is parked and returns here."""
        self._count()

    @property
    def serves(self) -> bool:
        """Whether its node does not drain and it is not withdrawn."""
        return not self.node.node.draining and (self.gpu is None or not self.gpu.withdrawn)

    @property
    def is_offered(self) -> bool:
        """Whether it is in its group's index: it serves, and no plan or reservation keeps it back."""
        return not self.shut and self.serves

    @property
    def is_empty(self) -> bool:
        return not self.held

    @property
    def part_free(self) -> float:
        """The free part of a GPU, 0 to 1."""
        if self.taken and (family := self.gpu.device.family if self.gpu else None) is not None:
            return family.free_slots[self.taken] / family.slots
        return self.free / SHARE_UNITS

    def refusal(self, held: PlacedContainer) -> str:
        """Why the container cannot be put here, or ""."""
        wanted = held.slice
        if wanted.profile:
            return self._refuses_instance(wanted.profile, wanted.start)
        need = wanted.units or SHARE_UNITS
        if need > self.free or self.mask or (self.gpu is not None and self.gpu.mig):
            return f"{self.id} has {self.free} of {SHARE_UNITS} parts free, {need} are needed"
        if wanted.units and (self.gpu is None or not self.gpu.shareable):
            return f"{self.id} is not given in shares"
        if wanted.units and self.held and not self.takes(held.tenant, neighbours=held.neighbours):
            return f"{self.id} is shared by another tenant"
        return ""

    def takes(self, tenant: str, *, neighbours: bool) -> bool:
        return not self.held or (self.tenant == tenant and tenant != "") or (self.agrees and neighbours)

    def _refuses_instance(self, profile: str, start: int) -> str:
        family = self.gpu.device.family if self.gpu else None
        if self.gpu is None or family is None or not self.gpu.mig:
            return f"{self.id} is not in MIG mode"
        shape = family.by_key.get(profile)
        if shape is None or start not in shape.starts:
            return f"{profile}@{start} is no legal place on {self.id}"
        if self.taken & shape.mask(start) or (shape.media and self.media):
            return f"{profile}@{start} on {self.id} is taken"
        return ""

    def put(self, held: PlacedContainer) -> None:
        """Add a container; the caller has checked `refusal`."""
        first = not self.held
        self.held[held.container] = held
        self._count()
        self.agrees = held.neighbours and (first or self.agrees)
        self.tenant = held.tenant if first or self.tenant == held.tenant else ""

    def drop(self, container: str) -> None:
        del self.held[container]
        self._count()
        tenants = {held.tenant for held in self.held.values()}
        self.tenant = tenants.pop() if len(tenants) == 1 else ""
        self.agrees = bool(self.held) and all(held.neighbours for held in self.held.values())

    def describe(self, gpu: Gpu) -> None:
        """Replace the description of the device, whose instances may have changed."""
        self.gpu = gpu
        self.shut = bool(gpu.kept)
        self._count()

    def warmth_in(self, node: Node) -> tuple[frozenset[ReadyPlace], tuple[ParkedPlace, ...]]:
        """What is ready and what is parked here by a description of its node."""
        return self._ready_in(node), tuple([at for at in node.parked if at.part == self.id and self._can_be(at)])

    def _can_be(self, at: ParkedPlace) -> bool:
        """Whether an instance may lie there: what a node says of it goes into masks, and their tables."""
        family = self.gpu.device.family if self.gpu is not None else None
        shape = family.by_key.get(at.profile) if family is not None else None
        return shape is None or at.start in shape.starts

    def _ready_in(self, node: Node) -> frozenset[ReadyPlace]:
        if not node.blanks:
            return NO_BLANKS
        part = "" if self.slot is not None and self.slot.kind is SliceKind.CPU else self.id
        family = self.gpu.device.family if self.gpu is not None else None
        found = set()
        for at in node.blanks:
            if at.part == part and not at.profile:
                found.add((WHOLE, at.base))
            elif at.part == part and family is not None and at.profile in family.by_key:
                found.add(((family.by_key[at.profile].index, at.start), at.base))
        return frozenset(found)

    def parked_beside(self, tenant: str, profile: int = -1, start: int = 0) -> list[ParkedPlace]:
        """What is parked here and has to end before a container of a tenant starts on it, or on a MIG instance of it.

        Nobody's context is beside another tenant's, and an instance that is destroyed takes the context along.
        """
        return [at for at in self.parked if at.container not in self.held and self._ends(at, tenant, profile, start)]

    def _ends(self, at: ParkedPlace, tenant: str, profile: int, start: int) -> bool:
        family = self.gpu.device.family if self.gpu is not None else None
        if profile < 0 or family is None or at.profile not in family.by_key:
            return at.tenant != tenant
        wanted, there = family.profiles[profile], family.by_key[at.profile]
        if (there.index, at.start) == (profile, start):
            return at.tenant != tenant
        return bool(there.mask(at.start) & wanted.mask(start)) or (there.media and wanted.media)

    def parked_mask(self, tenant: str, profile: int) -> int:
        """The memory slices of MIG instances that a new one of a profile leaves to what is parked."""
        family = self.gpu.device.family if self.gpu is not None else None
        mask = 0
        for at in self.parked if family is not None else ():
            there = family.by_key.get(at.profile) if family is not None else None
            if there is not None and not (there.index == profile and at.tenant == tenant):
                mask |= there.mask(at.start)
        return mask

    def _count(self) -> None:
        """Derive the occupancy from the containers, so that it cannot drift."""
        self.taken, self.free, self.media = occupied(self)
        self.mask = self.taken | self.recut
        self.idle = idle_cuts(self)

    @property
    def recut(self) -> int:
        """The memory slices that a plan cuts anew."""
        family = self.gpu.device.family if self.gpu is not None and self.gpu.recut else None
        if self.gpu is None or family is None:
            return 0
        masks = (family.by_key[p.profile].mask(p.start) for p in self.gpu.recut if p.profile in family.by_key)
        return reduce(or_, masks, 0)

    def instances(self) -> list[MigPlacement]:
        return sorted(
            MigPlacement(start=held.slice.start, profile=held.slice.profile)
            for held in self.held.values()
            if held.slice.profile
        )


def occupied(unit: Unit) -> tuple[int, int, bool]:
    """The mask, the free thousandths and whether video engines are used, derived from the containers."""
    mask, free, media = 0, SHARE_UNITS, False
    family = unit.gpu.device.family if unit.gpu else None
    for held in unit.held.values():
        if held.slice.profile and family is not None:
            profile = family.by_key[held.slice.profile]
            mask |= profile.mask(held.slice.start)
            media = media or profile.media
        else:
            free -= held.slice.units or SHARE_UNITS
    return mask, free, media


def idle_cuts(unit: Unit) -> frozenset[InstanceKey]:
    family = unit.gpu.device.family if unit.gpu and unit.gpu.mig else None
    if family is None or unit.gpu is None or not unit.gpu.instances:
        return NO_CUTS
    used = {*unit.instances(), *unit.gpu.recut}
    return frozenset((family.by_key[i.profile].index, i.start) for i in unit.gpu.instances if i not in used)


class NodeOccupancy:
    __slots__ = ("by_group", "by_id", "cpu", "different", "gpus", "memory", "node", "rank", "room", "units", "vacant")

    def __init__(self, node: Node, rank: int) -> None:
        self.node = node
        self.rank = rank
        self.units: list[Unit] = []
        self.gpus: list[Unit] = []
        """The units that are not slots."""
        self.by_id: dict[str, Unit] = {}
        self.different: dict[DeviceGroup, list[Unit]] = {}
        """The units of each group that `on_nodes` compares; computed on demand, dropped at each change."""
        self.by_group: dict[DeviceGroup, list[Unit]] = {}
        self.vacant: dict[DeviceGroup, list[int]] = {}
        """Ranks of its empty whole devices, by group."""
        self.memory = self.cpu = 0
        """Bytes and thousandths of a core that its containers are promised."""
        self.room = NOTHING_KNOWN
        """As the indexes have it; `Fleet` keeps it up to date."""

    @property
    def name(self) -> str:
        return self.node.name

    def add(self, unit: Unit) -> None:
        self.units.append(unit)
        if unit.gpu is not None:
            self.gpus.append(unit)
        self.by_id[unit.id] = unit
        self.by_group.setdefault(unit.group, []).append(unit)

    @property
    def free_host(self) -> HostShare | None:
        """What is left of its host; None if it does not say what there is. Below 0 if reports show more than that."""
        host, kept = self.node.host, self.node.kept_host
        if host is None:
            return None
        return HostShare(
            cpu_millis=host.cpu_millis - kept.cpu_millis - self.cpu, memory=host.memory - kept.memory - self.memory
        )

    def room_now(self) -> HostRoom:
        """What is free on it, in steps, from its units and its host."""
        devices = sum([unit.part_free for unit in self.gpus if unit.serves])
        return host_room(devices, self.free_host, self.gpus[0].group.kind.name if self.gpus else "")
