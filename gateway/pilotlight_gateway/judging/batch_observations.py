"""Calls that ran together share their time and their cost: a batch is one observation, not one per call."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

MOST_BATCHES = 128
"""That have not all of their calls; the oldest is taken as it is."""
WHOLE_AFTER_S = 2.0
"""After which a batch is taken as it is: the rest of its calls was lost, or is told by another gateway."""


class MeasuredAmount(NamedTuple):
    """What a call, or a batch, says of one amount."""

    guard: str
    score: float
    """Within [-1, 1], after the tolerance."""
    residual: float
    """The logarithm over the expected one, clipped to the spread, before the tolerance."""
    spread: float


class PendingBatch(msgspec.Struct, array_like=True):
    """A batch of which some calls have come."""

    size: int
    canary: bool
    rho: float
    at: float
    """When its first call ended."""
    calls: int = 0
    events: list[str] = []
    """That were counted: each counts once."""
    sums: dict[str, list[float]] = {}
    """By guard: the sums of scores, residuals and spreads, and of how many calls."""

    def add(self, measured: list[MeasuredAmount]) -> None:
        """What another call of it says."""
        for guard, score, residual, spread in measured:
            held = self.sums.setdefault(guard, [0.0, 0.0, 0.0, 0.0])
            held[0] += score
            held[1] += residual
            held[2] += spread
            held[3] += 1.0

    def means(self) -> list[MeasuredAmount]:
        """What it says as one observation."""
        return [
            MeasuredAmount(guard, score / count, residual / count, spread / count)
            for guard, (score, residual, spread, count) in self.sums.items()
        ]
