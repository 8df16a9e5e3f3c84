"""The cost of a place to later asks, tabulated over all states of a device.

`mask_fragmentation` has the cost for MIG masks, `share_fragmentation` that for shares. A row has the states in which an
option fits, best first, so that a decision takes the first state that some device is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation
from pilotlight_placement.fragmentation.share_fragmentation import TypicalTask, table_of
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Family
from pilotlight_placement.hardware.node import SHARE_UNITS, units_of

PRIOR = 0.05
"""Weight of each plain profile without any demand, which keeps room for large ones."""

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
    shares: tuple[ScoreRow, ...]
    """For each number of requested 64ths (0 unused); the state is the number of free 64ths."""

    @cached_property
    def share_best(self) -> tuple[dict[int, ScoreKey], ...]:
        return tuple({state: key for key, state, _ in row} for row in self.shares)


def scores_of(device: Device, mix: Mapping[AskShape, float]) -> Scores:
    masks = mask_scores(device.family, profile_weights(device, mix)) if device.family else None
    return Scores(masks=masks, shares=share_rows(share_weights(device, mix)))


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


def share_weights(device: Device, mix: Mapping[AskShape, float]) -> tuple[float, ...]:
    weights = [0.0] * (SHARE_UNITS + 1)
    weights[SHARE_UNITS] = PRIOR
    for shape, part in mix.items():
        units = units_of(shape.mib, device) if shape.share else SHARE_UNITS
        if units <= SHARE_UNITS and shape.count == 1:
            weights[units] += part
    return tuple(weights)


@lru_cache(maxsize=256)
def share_rows(weights: tuple[float, ...]) -> tuple[ScoreRow, ...]:
    """For each number of requested 64ths, every sufficient number of free ones, by key."""
    worth = expected(weights)
    rows: list[ScoreRow] = [()]
    for asked in range(1, SHARE_UNITS + 1):
        row = [
            (
                (round((worth[free] - worth[free - asked] - asked) / SHARE_UNITS, 9), (free - asked) / SHARE_UNITS, 0),
                free,
                0,
            )
            for free in range(asked, SHARE_UNITS + 1)
        ]
        rows.append(tuple(sorted(row)))
    return tuple(rows)


def expected(weights: Sequence[float]) -> list[float]:
    """Expected load in 64ths of a device by its free ones, if typical asks come in turn.

    The table of `share_fragmentation`, in 64ths and without cores.
    """
    asks = [TypicalTask(weight=weight, cpu=0, milli=size) for size, weight in enumerate(weights) if weight and size]
    table = table_of(asks, offers=sum(weights) or 1.0, whole=SHARE_UNITS, grain=1, most_cores=0)
    return [row[0] for row in table]
