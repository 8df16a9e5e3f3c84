"""The possible positions of MIG instances on a GPU: one occupancy mask per device, and tables over all masks.

A MIG GPU has memory slices in a row (8, or 4 on an A30). An instance takes `size` neighbouring slices from one of its
profile's legal starts; no two overlap, and at most one has the media engines (+me). Any such layout is legal, so an
occupancy is a small integer, bit n for memory slice n, and everything else is a look-up in tables of the family.

Shapes and starts are in `catalogue.toml` (with sources). The tests enumerate all layouts: none exceeds the compute
slices or SMs of its device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pilotlight_core.model.devices import MigPlacement


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A shape of instance of one family: `size` memory slices and `compute` compute slices from a legal start."""

    key: str
    """"1g", "1g.me" (with media engines), "1g.2x" (double memory), "2g", …: the same on every device of the family."""
    index: int
    """In `Family.profiles`, and in every table."""
    size: int
    compute: int
    starts: tuple[int, ...]
    """Ascending."""
    most: int
    """The driver's limit of such instances on a device."""
    media: bool = False

    def __post_init__(self) -> None:
        if self.size < 1 or self.compute < 1 or list(self.starts) != sorted(set(self.starts)):
            raise ValueError(f"{self.key}: a size and ascending starts are needed")

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """The mask of an instance for each of `starts`."""
        return tuple(self.mask(start) for start in self.starts)

    def mask(self, start: int) -> int:
        return ((1 << self.size) - 1) << start


Layout = tuple[MigPlacement, ...]
"""Instances of one device, by start."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """All devices with the same layouts. Tables are indexed by mask (0 to `full`), then by `Profile.index`."""

    name: str
    slots: int
    """Memory slices in a row."""
    compute: int
    """Number of compute slices."""
    profiles: tuple[Profile, ...]

    def __post_init__(self) -> None:
        for profile in self.profiles:
            if self.profiles[profile.index] is not profile or profile.starts[-1] + profile.size > self.slots:
                raise ValueError(f"{self.name}: {profile.key} does not lie within {self.slots} slices")

    @cached_property
    def full(self) -> int:
        return (1 << self.slots) - 1

    @cached_property
    def by_key(self) -> dict[str, Profile]:
        return {profile.key: profile for profile in self.profiles}

    @cached_property
    def free_starts(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """`free_starts[mask][profile]`: the starts at which the profile still fits, ascending."""
        return tuple(
            tuple(
                tuple(start for start, taken in zip(profile.starts, profile.masks, strict=True) if not taken & mask)
                for profile in self.profiles
            )
            for mask in range(self.full + 1)
        )

    @cached_property
    def fits(self) -> tuple[int, ...]:
        """`fits[mask]`: a bit set of the profiles (by index) that still fit somewhere."""
        return tuple(sum(1 << p for p, starts in enumerate(row) if starts) for row in self.free_starts)

    @cached_property
    def media(self) -> int:
        return sum(1 << profile.index for profile in self.profiles if profile.media)

    @cached_property
    def free_slots(self) -> tuple[int, ...]:
        """`free_slots[mask]`: the number of free memory slices."""
        return tuple(self.slots - mask.bit_count() for mask in range(self.full + 1))

    def masks_of(self, layout: Iterable[MigPlacement]) -> int:
        """The occupancy of a layout.

        Raises:
            ValueError: if an instance has no legal start, overlaps another, or is a second one with media engines.
        """
        mask, media = 0, 0
        for instance in layout:
            profile = self.by_key.get(instance.profile)
            if profile is None or instance.start not in profile.starts:
                raise ValueError(f"{instance} is no legal place on a {self.name} GPU")
            taken = profile.mask(instance.start)
            media += profile.media
            if mask & taken:
                raise ValueError(f"{instance} overlaps another instance")
            if media > 1:
                raise ValueError(f"{instance} is the second instance with media engines")
            mask |= taken
        return mask


def layouts(family: Family, keys: Iterable[str]) -> Iterator[Layout]:
    """Every legal layout of instances with the given profiles once, the empty one first."""
    chosen = [family.by_key[key] for key in keys]

    def extend(placed: Layout, mask: int, media: int, least: int) -> Iterator[Layout]:
        yield placed
        for start in range(least, family.slots):
            for profile in chosen:
                taken = profile.mask(start)
                if start in profile.starts and not mask & taken and media + profile.media <= 1:
                    more = (*placed, MigPlacement(start=start, profile=profile.key))
                    yield from extend(more, mask | taken, media + profile.media, start + 1)

    return extend((), 0, 0, 0)


def maximal_layouts(family: Family, keys: Iterable[str]) -> Iterator[Layout]:
    """The layouts to which no instance of the given profiles can be added."""
    chosen = [family.by_key[key] for key in keys]
    for layout in layouts(family, [profile.key for profile in chosen]):
        row = family.free_starts[family.masks_of(layout)]
        media = any(family.by_key[instance.profile].media for instance in layout)
        if not any(row[profile.index] for profile in chosen if not (media and profile.media)):
            yield layout


def reachable(family: Family, keys: Iterable[str]) -> frozenset[int]:
    return frozenset(family.masks_of(layout) for layout in layouts(family, keys))
