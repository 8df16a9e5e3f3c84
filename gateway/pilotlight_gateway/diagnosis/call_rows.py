"""Examples of calls, weighted so that together they are what the sketch of all durations says.

A window keeps some calls drawn by chance and the slowest ones. Each stands for the calls whose durations are nearest to
its own: so the percentiles of few examples are those of all calls, and the tail, which matters here, is not left to
chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pilotlight_gateway.diagnosis.diagnosis_window import CallSample, StageTimes


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """One call as an example."""

    stages: StageTimes
    tenant: str = ""

    @property
    def total_ms(self) -> float:
        return sum(self.stages)


def calibrated(rows: Sequence[ExampleCall], durations: Iterable[tuple[float, float]]) -> tuple[CallSample, ...]:
    """The rows, each with the weight of the durations (ms, count) that are nearest to its own; those of none go."""
    ordered = sorted(rows, key=lambda row: row.total_ms)
    if not ordered:
        return ()
    totals = [row.total_ms for row in ordered]
    ends = [(one + other) / 2 for one, other in pairwise(totals)] + [float("inf")]
    weights = [0.0] * len(ordered)
    place = 0
    for ms, count in sorted(durations):
        while ms > ends[place]:
            place += 1
        weights[place] += count
    return tuple(
        CallSample(row.stages, weight, row.tenant) for row, weight in zip(ordered, weights, strict=True) if weight > 0
    )
