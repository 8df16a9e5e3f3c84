"""The cost of a place on a MIG device to later asks, by the present scarcity of each profile's places.

A change of one device's occupancy mask is priced in two parts:

* *scarcity*, from the present fleet: if n devices have room for a profile of demand d (instances wanted at a time), the
  chance that it finds none falls like exp(-n / tau), where tau grows a little slower than the square root of d, like
  the deviation of a Poisson number. A device that loses its room for the profile costs the profile's part in demand
  times the rise of that chance. In a full fleet the worth of what the occupant would displace is subtracted: a place
  for one large instance is then worth less than the small ones in it.
* *expected value*, a table over masks: how soon each profile would fit if nothing new came (discounted, over all
  layouts with that mask), and how many instances of it there would be room for. It decides where nothing is scarce, and
  keeps small instances together.

FGD (Weng et al., USENIX ATC 2023) weighs by demand what becomes unusable, without scarcity. The constants were fitted
on the churn of 100 devices under five mixes (three of `benchmarks.placement_mig`) with other seeds; a change of one of
them by a quarter changes acceptance by 0.06 points at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from pilotlight_placement.hardware.geometry import Family, Layout, layouts

TAU = 0.39
TAU_POWER = 0.36
"""tau = TAU * d ** TAU_POWER: the number of devices over which the chance to find no place falls to 1/e."""
DISPLACED = 0.15
"""Part of a place's worth, per memory slice, that is subtracted when nothing is free."""
SPARE = 0.135
"""Free part of the fleet at which that has fallen to 1/e."""
SOON = 3.7e-4
"""Value of soon fitting a profile of half a device; a sure refusal of every ask costs 1."""
SOON_POWER = 3.0
"""Exponent of a profile's size in that value."""
DISCOUNT = 58.0
"""The discount rate of departures, in units of an instance's mean rate of leaving."""
ROOM = 8e-5
"""Value of room for one more instance of half a device."""
HALF = 4
"""Memory slices of half a device, the unit of sizes."""


class MaskChange(NamedTuple):
    """A place for a profile in a mask: its start, the profiles (bits) that it leaves no room for, the value lost."""

    start: int
    lost: int
    expected_value: float


class MaskFragmentation:
    """The tables of one family of devices under one mix of demand: parts by profile index, summing to 1."""

    def __init__(self, family: Family, mix: Sequence[float]) -> None:
        total = sum(mix)
        if len(mix) != len(family.profiles) or not total > 0:
            raise ValueError(f"{family.name}: a part in demand is needed for each profile, and one above 0")
        self.family = family
        self.mix = tuple(part / total for part in mix)
        self._expected_value: tuple[float, ...] = ()
        self._changes: tuple[tuple[tuple[MaskChange, ...], ...], ...] = ()

    @property
    def expected_value(self) -> tuple[float, ...]:
        """The expected value of a device by mask; 0 for masks of no layout."""
        if not self._expected_value:
            self._expected_value = self._make_expected_value()
        return self._expected_value

    @property
    def changes(self) -> tuple[tuple[tuple[MaskChange, ...], ...], ...]:
        """`changes[profile][mask]`: the places of the profile on a device in that state, highest start first."""
        if not self._changes:
            self._changes = self._make_changes()
        return self._changes

    def _make_expected_value(self) -> tuple[float, ...]:
        weights = [
            part * math.pow(p.size / HALF, SOON_POWER) for part, p in zip(self.mix, self.family.profiles, strict=True)
        ]
        rooms = [part * p.size / HALF for part, p in zip(self.mix, self.family.profiles, strict=True)]
        soon = _soon(self.family, self.mix)
        return tuple(
            SOON * _dot(weights, soon[mask]) + ROOM * _dot(rooms, room) for mask, room in enumerate(_rooms(self.family))
        )

    def _make_changes(self) -> tuple[tuple[tuple[MaskChange, ...], ...], ...]:
        family, value = self.family, self.expected_value
        made = []
        for profile in family.profiles:
            taken = {start: profile.mask(start) for start in profile.starts}
            places = [reversed(starts[profile.index]) for starts in family.free_starts[: family.full + 1]]
            made.append(
                tuple(
                    [
                        tuple([_change(family, value, mask, start, mask | taken[start]) for start in starts])
                        for mask, starts in enumerate(places)
                    ]
                )
            )
        return tuple(made)

    def prices(self, open_on: Sequence[int], running: float, free: float) -> tuple[float, ...]:
        """For each profile, the cost of one device fewer with room for it.

        Args:
            open_on: the number of devices with room for each profile now, by profile index.
            running: present instances.
            free: the free part of all memory slices, 0 to 1.
        """
        displaced = DISPLACED * math.exp(-free / SPARE)
        return tuple(
            part * max(0.0, 1 - displaced * profile.size) * _last(count, tau_of(part * running)) if part else 0.0
            for part, profile, count in zip(self.mix, self.family.profiles, open_on, strict=True)
        )

    def cost(self, change: MaskChange, prices: Sequence[float]) -> float:
        """The cost of a change: less is better, and only differences are meaningful."""
        return change.expected_value + sum(price for bit, price in enumerate(prices) if change.lost >> bit & 1)

    def best(self, profile: int, masks: Iterable[int], prices: Sequence[float]) -> tuple[float, int, int] | None:
        """Cost, mask and start of the cheapest place for a profile in any of the masks; None if it fits in none.

        Among equal costs best fit decides, then the higher start.
        """
        changes, slots = self.changes[profile], self.family.free_slots
        lost: dict[int, float] = {0: 0.0}
        found: tuple[float, int, int, int] | None = None
        for mask in masks:
            for change in changes[mask]:
                if change.lost not in lost:
                    lost[change.lost] = self.cost(change, prices) - change.expected_value
                key = (round(lost[change.lost] + change.expected_value, 12), slots[mask], -change.start, mask)
                if found is None or key < found:
                    found = key
        return None if found is None else (found[0], found[3], -found[2])


def tau_of(demand: float) -> float:
    """The number of devices over which the chance that a profile finds no place falls to 1/e."""
    return TAU * math.pow(max(demand, 0.01), TAU_POWER)


def open_on(family: Family, devices: Mapping[int, int]) -> tuple[int, ...]:
    """The number of devices on which each profile fits, from the number of devices by mask."""
    return tuple(
        sum(count for mask, count in devices.items() if family.fits[mask] >> profile.index & 1)
        for profile in family.profiles
    )


def _last(count: int, tau: float) -> float:
    """Rise of the chance that no place is found, with one of `count` devices fewer."""
    return math.exp(-(count - 1) / tau) - math.exp(-count / tau)


def _change(family: Family, value: Sequence[float], mask: int, start: int, after: int) -> MaskChange:
    """The change of a mask to another one."""
    return MaskChange(start, family.fits[mask] & ~family.fits[after], value[mask] - value[after])


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@cache
def _rooms(family: Family) -> tuple[tuple[int, ...], ...]:
    """`_rooms(family)[mask][profile]`: the number of instances of the profile that there is room for."""
    table = []
    for mask in range(family.full + 1):
        row = []
        for profile in family.profiles:
            taken, count = mask, 0
            for place in profile.masks:
                if not taken & place:
                    taken, count = taken | place, count + 1
            row.append(count)
        table.append(tuple(row))
    return tuple(table)


@cache
def _waits(family: Family) -> dict[Layout, tuple[float, ...]]:
    """For each layout and profile: E[exp(-DISCOUNT * t)] of the time t until it fits, if instances only leave.

    Lives are exponential with mean 1, so each of k instances is the next to leave with equal chance, after 1 / k on
    average.
    """
    plain = [profile.key for profile in family.profiles if not profile.media]
    waits: dict[Layout, tuple[float, ...]] = {}
    for layout in sorted(layouts(family, plain), key=len):
        fits = family.fits[family.masks_of(layout)]
        after = [waits[layout[:gone] + layout[gone + 1 :]] for gone in range(len(layout))]
        waits[layout] = tuple(
            1.0 if fits >> profile.index & 1 else sum(row[profile.index] for row in after) / (len(layout) + DISCOUNT)
            for profile in family.profiles
        )
    return waits


@cache
def _masks(family: Family) -> tuple[int, ...]:
    """The mask of each layout, in the order of `_waits`."""
    return tuple([family.masks_of(layout) for layout in _waits(family)])


def _soon(family: Family, mix: Sequence[float]) -> list[list[float]]:
    """`_waits` by mask: the mean over its layouts, weighted by the chance of their instances in the mix."""
    # A profile without demand may still be there: it counts a little.
    rates = {p.key: max(part / len(p.starts), 1e-6) for p, part in zip(family.profiles, mix, strict=True)}
    sums = [[0.0] * len(family.profiles) for _ in range(family.full + 1)]
    weights = [0.0] * (family.full + 1)
    for (layout, waits), mask in zip(_waits(family).items(), _masks(family), strict=True):
        weight = math.prod([rates[instance.profile] for instance in layout])
        weights[mask] += weight
        row = sums[mask]
        for index, wait in enumerate(waits):
            row[index] += weight * wait
    return [[value / (weight or 1.0) for value in row] for row, weight in zip(sums, weights, strict=True)]
