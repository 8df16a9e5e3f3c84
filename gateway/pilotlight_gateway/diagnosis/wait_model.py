"""How long batches take and calls wait, from a few sums: a line of batch times, and the mean wait of a queue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pilotlight_gateway.diagnosis.diagnosis_window import BatchTimes

SATURATED = 0.995


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A batch of n takes `fixed_ms + each_ms * n`."""

    fixed_ms: float
    each_ms: float

    def ms(self, size: float) -> float:
        return self.fixed_ms + self.each_ms * size


def batch_line(times: Sequence[BatchTimes]) -> BatchLine:
    """The line of least squares; where sizes hardly differ, their mean time whatever the size."""
    count = sum(each.count for each in times)
    if count <= 0:
        return BatchLine(0.0, 0.0)
    size = sum(each.count * each.size for each in times) / count
    ms = sum(each.count * each.ms for each in times) / count
    spread = sum(each.count * (each.size - size) ** 2 for each in times)
    if spread < 1e-3 * count:
        return BatchLine(ms, 0.0)
    slope = sum(each.count * (each.size - size) * (each.ms - ms) for each in times) / spread
    each_ms = min(max(0.0, slope), ms / size)  # nothing takes less than no time
    return BatchLine(ms - each_ms * size, each_ms)


def wait_factor(servers: float, busy: float) -> float:
    """Sakasegawa's mean wait before `servers`, in service times; infinite at saturation.

    `W(c, r) = r^(sqrt(2(c+1)) - 1) / (c (1 - r))`.
    """
    if busy >= SATURATED:
        return math.inf
    servers = max(1.0, servers)
    return float(busy ** (math.sqrt(2 * (servers + 1)) - 1) / (servers * (1 - busy)))


def weighted_quantile(values: Iterable[tuple[float, float]], part: float) -> float:
    """The least value up to which `part` of all weight lies, of (value, weight); 0 of none."""
    ordered = sorted(values)
    total = sum(weight for _, weight in ordered)
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= part * total:
            return value
    return 0.0
