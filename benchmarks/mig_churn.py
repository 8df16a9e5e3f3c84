"""Churn over a fleet of MIG devices: containers of one profile each come, stay for a while and go, or are refused.

Arrivals are Poisson, lives exponential with mean 1, nothing is moved and nothing that fits is refused. A policy sees
the fleet as it is and the mix of what has arrived so far; of the future it sees nothing, of instances only their masks.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation
from pilotlight_placement.hardware.geometry import Family

LEARN_AT = 64
"""After so many arrivals the mix is looked at, and again whenever they have doubled."""
PRIOR = 8.0
"""Arrivals of each profile that a policy assumes to have seen."""

Score = tuple[float, float]
"""Less is better."""
Arrival = tuple[float, int, float]
"""When, which profile (index), until when."""
Chosen = tuple[int, int] | None
"""Device and start, or None if nothing fits."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One setting: a mix of profiles (part by profile index), and the memory asked for as a part of the fleet's."""

    family: Family
    mix: tuple[float, ...]
    load: float
    devices: int

    def trace(self, arrivals: int, seed: int) -> list[Arrival]:
        """Arrivals that are the same for every policy."""
        dice = Random(seed)
        size = sum(part * p.size for part, p in zip(self.mix, self.family.profiles, strict=True)) / sum(self.mix)
        rate = self.load * self.devices * self.family.slots / size
        at, found = 0.0, []
        drawn = dice.choices(range(len(self.mix)), self.mix, k=arrivals)
        for profile in drawn:
            at += dice.expovariate(rate)
            found.append((at, profile, at + dice.expovariate(1.0)))
        return found


@dataclass
class Fleet:
    """Devices by mask. `mix` is what has arrived so far."""

    family: Family
    devices: int
    masks: list[int] = field(init=False)
    by_mask: dict[int, list[int]] = field(init=False)
    """Mask -> devices in that state, by number."""
    fits: list[int] = field(init=False)
    """By profile: on how many devices it fits."""
    free: int = field(init=False)
    running: int = 0
    mix: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.masks = [0] * self.devices
        self.by_mask = {0: list(range(self.devices))}
        self.fits = [self.devices] * len(self.family.profiles)
        self.free = self.devices * self.family.slots
        self.mix = tuple(0.0 if profile.media else 1.0 for profile in self.family.profiles)

    def change(self, device: int, mask: int) -> None:
        """Put a device into another state."""
        before, family = self.masks[device], self.family
        was, becomes = family.fits[before], family.fits[mask]
        self.free += family.free_slots[mask] - family.free_slots[before]
        for profile in range(len(self.fits)):
            self.fits[profile] += (becomes >> profile & 1) - (was >> profile & 1)
        mine = self.by_mask[before]
        mine.remove(device)
        if not mine:
            del self.by_mask[before]
        insort(self.by_mask.setdefault(mask, []), device)
        self.masks[device] = mask


Policy = Callable[[Fleet, int], Chosen]
"""Chooses among the places of a profile; keeps tables of its own."""


def first_fit(fleet: Fleet, profile: int) -> Chosen:
    """The first device, the lowest start."""
    free, fits = fleet.family.free_starts, fleet.family.fits
    for device, mask in enumerate(fleet.masks):
        if fits[mask] >> profile & 1:
            return device, free[mask][profile][0]
    return None


class Ranked:
    """A policy that scores states and starts; `learns` scores anew when the mix has moved.

    What scores the same is decided by the fixed order of devices, then by the higher start.
    """

    def __init__(self, score: Callable[[Fleet, int, int, int], Score], *, learns: bool = False) -> None:
        self._score = score
        self._learns = learns
        self._mix: tuple[float, ...] | None = None
        self._rows: list[list[dict[int, int]]] = []

    def __call__(self, fleet: Fleet, profile: int) -> Chosen:
        if self._mix is None or (self._learns and self._mix is not fleet.mix):
            self._mix = fleet.mix
            self._rows = [self._row(fleet, index) for index in range(len(fleet.family.profiles))]
        by_mask = fleet.by_mask
        for alike in self._rows[profile]:
            found = [(by_mask[mask][0], start) for mask, start in alike.items() if mask in by_mask]
            if found:
                return min(found)
        return None

    def _row(self, fleet: Fleet, profile: int) -> list[dict[int, int]]:
        """By score, best first: mask -> start."""
        row: dict[Score, dict[int, int]] = {}
        for mask in range(fleet.family.full + 1):
            for start in fleet.family.free_starts[mask][profile]:
                row.setdefault(self._score(fleet, profile, mask, start), {})[mask] = start
        return [alike for _, alike in sorted(row.items())]


def best_fit(fleet: Fleet, _: int, mask: int, start: int) -> Score:
    """Least left free, then the lowest start."""
    return fleet.family.free_slots[mask], start


def best_fit_high(fleet: Fleet, _: int, mask: int, start: int) -> Score:
    """Least left free, then the highest start."""
    return fleet.family.free_slots[mask], -start


def fgd(fleet: Fleet, profile: int, mask: int, start: int) -> Score:
    """FGD on masks: least growth of what is stranded, in whole scores.

    The measure of Weng et al. with memory slices in the place of a node's GPUs: for a profile that fits nowhere all
    that is free is stranded, else what is free where it cannot lie; weighted by the profile's part in demand.
    """
    after = mask | fleet.family.profiles[profile].mask(start)
    return whole_score((_stranded(fleet, mask) - _stranded(fleet, after)) / fleet.family.slots), 0.0


def fgd_whole(fleet: Fleet, profile: int, mask: int, start: int) -> Score:
    """The same with a device as the unit: what is free is stranded if the profile does not fit, and not if it does."""
    after = mask | fleet.family.profiles[profile].mask(start)
    return whole_score((_blocked(fleet, mask) - _blocked(fleet, after)) / fleet.family.slots), 0.0


def whole_score(drop: float) -> float:
    """FGD's published score of a drop in stranded GPUs, negative: the whole part of 100 * sigmoid(drop).

    The many ties that this makes are part of the policy: the fixed order of devices then fills one after another.
    """
    return -math.floor(100 / (1 + math.exp(-round(drop, 6))))


def _stranded(fleet: Fleet, mask: int) -> float:
    total = 0.0
    for part, profile in zip(fleet.mix, fleet.family.profiles, strict=True):
        usable = 0
        for start in fleet.family.free_starts[mask][profile.index]:
            usable |= profile.mask(start)
        total += part * (fleet.family.free_slots[mask] - usable.bit_count())
    return total / sum(fleet.mix)


def _blocked(fleet: Fleet, mask: int) -> float:
    lost = sum(p for index, p in enumerate(fleet.mix) if not fleet.family.fits[mask] >> index & 1)
    return lost * fleet.family.free_slots[mask] / sum(fleet.mix)


class Ours:
    """The product's measure: `MaskFragmentation` on the live mix and the fleet as it is."""

    def __init__(self) -> None:
        self._mix: tuple[float, ...] | None = None
        self._tables: MaskFragmentation | None = None

    def __call__(self, fleet: Fleet, profile: int) -> Chosen:
        if self._tables is None or self._mix is not fleet.mix:
            self._mix = fleet.mix
            self._tables = MaskFragmentation(fleet.family, fleet.mix)
        free = fleet.free / (fleet.devices * fleet.family.slots)
        prices = self._tables.prices(fleet.fits, fleet.running, free)
        best = self._tables.best(profile, fleet.by_mask, prices)
        return None if best is None else (fleet.by_mask[best[1]][0], best[2])


POLICIES: dict[str, Callable[[], Policy]] = {
    "first_fit": lambda: first_fit,
    "best_fit_low": lambda: Ranked(best_fit),
    "best_fit_high": lambda: Ranked(best_fit_high),
    "fgd_masks": lambda: Ranked(fgd, learns=True),
    "fgd_whole": lambda: Ranked(fgd_whole, learns=True),
    "ours": Ours,
}


@dataclass(kw_only=True)
class Tally:
    """What became of the arrivals, by profile index."""

    arrived: list[int]
    accepted: list[int]

    @property
    def percent(self) -> float:
        """Accepted arrivals."""
        return 100 * sum(self.accepted) / sum(self.arrived)

    def percent_of_memory(self, family: Family) -> float:
        """Accepted memory slices."""
        sizes = [profile.size for profile in family.profiles]
        return 100 * _weighed(self.accepted, sizes) / _weighed(self.arrived, sizes)


def _weighed(counts: Sequence[int], sizes: Sequence[int]) -> int:
    return sum(count * size for count, size in zip(counts, sizes, strict=True))


def run(cell: Cell, trace: Sequence[Arrival], policy: Policy, warm_up: int) -> Tally:
    """Play a trace; arrivals before `warm_up` are placed and not counted."""
    fleet = Fleet(family=cell.family, devices=cell.devices)
    profiles = cell.family.profiles
    seen = [0.0 if profile.media else PRIOR for profile in profiles]
    tally = Tally(arrived=[0] * len(profiles), accepted=[0] * len(profiles))
    leaving: list[tuple[float, int, int]] = []
    learn_at = LEARN_AT
    for number, (at, profile, until) in enumerate(trace):
        while leaving and leaving[0][0] <= at:
            _, device, taken = heapq.heappop(leaving)
            fleet.change(device, fleet.masks[device] & ~taken)
            fleet.running -= 1
        seen[profile] += 1
        if number + 1 == learn_at:
            learn_at *= 2
            fleet.mix = tuple(seen)
        chosen = policy(fleet, profile)
        if chosen is not None:
            device, start = chosen
            taken = profiles[profile].mask(start)
            if fleet.masks[device] & taken or start not in profiles[profile].starts:
                raise ValueError(f"{profiles[profile].key} at {start} of device {device} is no free place")
            fleet.change(device, fleet.masks[device] | taken)
            fleet.running += 1
            heapq.heappush(leaving, (until, device, taken))
        if number >= warm_up:
            tally.arrived[profile] += 1
            tally.accepted[profile] += chosen is not None
    return tally
