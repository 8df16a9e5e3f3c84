"""The full layouts of MIG devices, and devices that are being filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.capacity_planner.capacity_plan import PlannedDevice
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Family, Layout, Profile, maximal_layouts


@cache
def full_cuts(family: Family, keys: tuple[str, ...]) -> tuple[Layout, ...]:
    """One layout for each multiset of the profiles to which nothing can be added, in a fixed order.

    Smaller layouts are parts of these: an unused instance costs nothing.
    """
    found: dict[tuple[tuple[str, int], ...], Layout] = {}
    for layout in maximal_layouts(family, keys):
        found.setdefault(tuple(sorted(counts_of(layout).items())), layout)
    counts = {shape: Counter(dict(shape)) for shape in found}
    return tuple(
        layout
        for shape, layout in sorted(found.items())
        if not any(counts[shape] < counts[other] for other in found if other != shape)
    )


def counts_of(layout: Layout) -> Counter[str]:
    return Counter(instance.profile for instance in layout)


@dataclass
class PartialDevice:
    device: Device
    price: float
    mask: int = 0
    held: list[tuple[MigPlacement, str]] = field(default_factory=list)

    @property
    def family(self) -> Family:
        """The device's family.

        Raises:
            ValueError: if it has none.
        """
        if self.device.family is None:
            raise ValueError(f"{self.device.name} cannot be cut")
        return self.device.family

    @property
    def fill(self) -> float:
        return self.mask.bit_count() / self.family.slots

    def start_for(self, profile: Profile) -> int | None:
        """The highest free start, which leaves the most room for large profiles below it."""
        starts = self.family.free_starts[self.mask][profile.index]
        return starts[-1] if starts else None

    def add(self, key: str, function: str) -> bool:
        profile = self.family.by_key[key]
        start = self.start_for(profile)
        if start is None:
            return False
        self.put(MigPlacement(start=start, profile=key), function)
        return True

    def put(self, instance: MigPlacement, function: str) -> None:
        self.held.append((instance, function))
        self.mask |= self.family.by_key[instance.profile].mask(instance.start)

    def copy(self) -> PartialDevice:
        return replace(self, held=list(self.held))

    def cutting(self) -> PlannedDevice:
        held = sorted(self.held)
        return PlannedDevice(
            device=self.device,
            layout=tuple(instance for instance, _ in held),
            functions=tuple(function for _, function in held),
        )


InstancePiece = tuple[str, str]


def fill_in(device: Device, layouts: Sequence[Layout], pieces: Iterable[InstancePiece]) -> list[PlannedDevice]:
    """Give the instances of layouts to the pieces; superfluous ones are left out.

    Raises:
        ValueError: if the layouts lack an instance for a piece.
    """
    waiting: dict[str, list[str]] = {}
    for key, function in sorted(pieces, reverse=True):
        waiting.setdefault(key, []).append(function)
    cuttings = []
    for layout in layouts:
        held = [(at, waiting[at.profile].pop()) for at in layout if waiting.get(at.profile)]
        if held:
            cuttings.append(
                PlannedDevice(device=device, layout=tuple(at for at, _ in held), functions=tuple(f for _, f in held))
            )
    if any(waiting.values()):
        raise ValueError(f"{device.name}: the layouts lack instances for {waiting}")
    return cuttings
