"""The tables by which places are scored, made anew when the mix of demand has moved.

`mask_fragmentation` has the cost of a place on a MIG device, `share_fragmentation` what a device can expect to carry,
`host_fragmentation` what a node can carry with its host; `place_costs` makes costs of the last two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.fragmentation.host_fragmentation import HostNeeds
from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation
from pilotlight_placement.fragmentation.share_fragmentation import ROWS, expected_loads
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import SHARE_UNITS, units_of

PRIOR = 0.05
"""Weight of each plain profile, and of a whole device, without any demand, which keeps room for large ones."""
GROUPS = (2, 4, 8)
GROUP_PRIOR = 0.01
"""Weight of each of these numbers of whole devices together, without any demand."""

DIGITS = 12
"""Digits to which costs are compared, so that the order of sums does not matter."""

ScoreKey = tuple[float, float, int]
"""(cost to later asks, part of the device left free, minus the start), which decides at equal price."""
ScoreRow = tuple[tuple[ScoreKey, int, int], ...]
"""(key, state, start) by key: all states in which an option fits, with the best start there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """The tables of one kind of device under one mix of demand. Immutable."""

    masks: MaskFragmentation | None
    loads: tuple[float, ...]
    """Expected load by free rows of the device (`share_fragmentation`)."""
    host: HostNeeds
    groups: Mapping[int, float]
    """Part of the demand that is for so many whole devices of one node together."""

    def load(self, units: int) -> float:
        """The expected load of a device with so many free parts, 0 to 1."""
        return self.loads[units * ROWS // SHARE_UNITS]

    def hosting(self, vacant: int) -> float:
        """Empty devices of a node, weighted by the demand for several that they could host together (as FGD)."""
        weight = 0.0
        for count, part in self.groups.items():
            if count <= vacant:
                weight += part
        return vacant * weight


def scores_of(device: Device, mix: Mapping[AskShape, float]) -> Scores:
    fitting = {shape: part for shape, part in mix.items() if shape.accepts(device.name)}
    groups = dict.fromkeys(GROUPS, GROUP_PRIOR)
    for shape, part in fitting.items():
        if shape.count > 1:
            groups[shape.count] = groups.get(shape.count, 0.0) + part
    return Scores(
        masks=mask_scores(device.family, profile_weights(device, fitting)) if device.family else None,
        loads=share_loads(tuple(sorted(share_weights(device, fitting).items()))),
        host=HostNeeds([(part, devices_of(shape, device), shape.host) for shape, part in fitting.items()]),
        groups=groups,
    )


@lru_cache(maxsize=64)
def mask_scores(family: Family, weights: tuple[float, ...]) -> MaskFragmentation:
    made = MaskFragmentation(family, weights)
    # Computed here, and not in the first decision that needs them: it takes some milliseconds.
    assert made.changes  # noqa: S101 - it is for making them
    return made


def best_start(
    scores: MaskFragmentation, profile: int, mask: int, prices: Sequence[float]
) -> tuple[ScoreKey, int] | None:
    """The key of a profile's best place in a mask, and its start; None if there is none."""
    best: tuple[float, int] | None = None
    for change in scores.changes[profile][mask]:
        cost = change.expected_value
        for index, price in enumerate(prices):
            if change.lost >> index & 1:
                cost += price
        this = (round(cost, DIGITS), -change.start)
        if best is None or this < best:
            best = this
    if best is None:
        return None
    family = scores.family
    left = (family.free_slots[mask] - family.profiles[profile].size) / family.slots
    return (best[0], left, best[1]), -best[1]


def profile_weights(device: Device, mix: Mapping[AskShape, float]) -> tuple[float, ...]:
    """Weight of each profile by index: a shape counts for the cheapest profile that holds it."""
    weights = [PRIOR * (not cut.profile.media and not cut.profile.key.endswith("x")) for cut in device.cuts]
    order = sorted(range(len(device.cuts)), key=lambda index: (device.shares[index], index))
    for shape, part in mix.items():
        if shape.count > 1:
            continue
        need = shape.mib or max(cut.memory for cut in device.cuts)
        fitting = [i for i in order if device.cuts[i].memory >= need and not device.cuts[i].profile.media]
        if fitting:
            weights[fitting[0]] += part
    return tuple(weights)


def share_weights(device: Device, mix: Mapping[AskShape, float]) -> dict[int, float]:
    """Weight of the asks for a device or a part of it, by the rows of its table that they take."""
    weights = {ROWS: PRIOR}
    for shape, part in mix.items():
        units = units_of(shape.mib, device) if shape.share else SHARE_UNITS
        if units <= SHARE_UNITS and shape.count == 1:
            rows = -(-units * ROWS // SHARE_UNITS)
            weights[rows] = weights.get(rows, 0.0) + part
    return weights


@lru_cache(maxsize=256)
def share_loads(weights: tuple[tuple[int, float], ...]) -> tuple[float, ...]:
    return expected_loads(dict(weights))


def devices_of(shape: AskShape, device: Device) -> float:
    """The devices of a kind that an ask takes: a count, a part, or 0 if one is too small."""
    if not shape.mib:
        return float(shape.count)
    part = shape.mib / device.memory if device.memory else 2.0
    return part if part <= 1 else 0.0
