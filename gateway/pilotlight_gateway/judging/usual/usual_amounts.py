"""What calls of the old version usually take, by their size: what scores are measured against.

The expected logarithm of an amount follows a line through that of the call's size, which is its declared cost
parameter, or else its body; flat where the size says nothing. Medians and spreads are of the distances from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.usual.robust import mad_of, median_of, quantile_of

LEAST_SPREAD = 0.01
"""Of a logarithm: where calls never vary, a microsecond would be an outlier."""
SIZE_MATTERS = 0.2
"""The least correlation by which a size says something."""

MOST_SIZE = 1e18
LOG_2 = math.log(2.0)


class UsualAmount(msgspec.Struct, frozen=True, array_like=True):
    """Of one amount, as logarithms."""

    level: float
    slope: float
    """By the logarithm of the size."""
    spread: float
    """Three standard deviations."""
    high: float
    """The distance from the line beyond which a call is out of the ordinary."""

    def residual(self, size: float, amount: float) -> float:
        """How far the logarithm of an amount is above the expected one."""
        return math.log(amount) - self.level - self.slope * size


def usual_amount(sizes: Sequence[float], logs: Sequence[float], part: float) -> UsualAmount:
    """Of logarithms of amounts by those of sizes; `part` of calls are below what is high."""
    slope = slope_of(sizes, logs)
    rests = [log - slope * size for size, log in zip(sizes, logs, strict=True)]
    level = median_of(rests)
    away = [rest - level for rest in rests]
    return UsualAmount(level, slope, 3.0 * max(mad_of(away), LEAST_SPREAD), quantile_of(away, part))


def slope_of(sizes: Sequence[float], logs: Sequence[float]) -> float:
    """By least squares; 0 where both have little to do with each other."""
    count = len(sizes)
    mean_x, mean_y = math.fsum(sizes) / count, math.fsum(logs) / count
    var_x = math.fsum([(x - mean_x) ** 2 for x in sizes])
    var_y = math.fsum([(y - mean_y) ** 2 for y in logs])
    both = math.fsum([(x - mean_x) * (y - mean_y) for x, y in zip(sizes, logs, strict=True)])
    if var_x <= 0.0 or var_y <= 0.0 or abs(both) < SIZE_MATTERS * math.sqrt(var_x * var_y):
        return 0.0
    return both / var_x


def size_of(call: ComparedCall) -> float:
    """The logarithm of what is known of a call's size before it runs."""
    return math.log1p(min(call.cost or call.body_bytes, MOST_SIZE))


def size_class_of(size: float) -> int:
    """Its class, by its logarithm: doublings of the declared cost parameter, or of bytes."""
    return int(size / LOG_2)
