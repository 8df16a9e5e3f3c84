"""Middles and spreads that a few wild values do not move."""

from __future__ import annotations

import math
from collections.abc import Sequence

NORMAL = 1.4826
"""A median distance, times this, is the standard deviation of what is normally distributed."""


def median_of(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else 0.5 * (ordered[half - 1] + ordered[half])


def mad_of(values: Sequence[float]) -> float:
    """The median distance from the median, as a standard deviation; of values that are mostly alike, the latter."""
    middle = median_of(values)
    found = NORMAL * median_of([abs(value - middle) for value in values])
    return found if found > 0.0 else deviation_of(values)


def deviation_of(values: Sequence[float]) -> float:
    """The standard deviation."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum([(value - mean) ** 2 for value in values]) / len(values))


def quantile_of(values: Sequence[float], part: float) -> float:
    """The least value that `part` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]
