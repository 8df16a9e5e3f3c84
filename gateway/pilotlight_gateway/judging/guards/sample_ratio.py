"""The guard on the split itself: whether calls come as they were sent. If not, nothing counted of them means anything.

For each probability `rho` that was in force the next call is predicted from the calls so far, as if 100 calls had
come as they should: `(100 rho + n1) / (100 + n)`. The product of these predictions over `rho` is the e-process.
"""

from __future__ import annotations

import msgspec

from pilotlight_gateway.judging.guards.wealth import LEAST, MOST

PRIOR = 100.0
SEGMENTS = 64
"""Shares whose counts are remembered; the oldest goes first."""


class SampleRatio(msgspec.Struct):
    """What the bet against the split has won."""

    e: float = 1.0
    counts: dict[float, list[int]] = {}
    """By rho: calls of the canary, and all."""

    def note(self, *, canary: bool, rho: float) -> None:
        """A call came."""
        if not 0.0 < rho < 1.0:
            return
        counts = self.counts.get(rho)
        if counts is None:
            if len(self.counts) >= SEGMENTS:
                del self.counts[next(iter(self.counts))]
            counts = self.counts[rho] = [0, 0]
        predicted = (PRIOR * rho + counts[0]) / (PRIOR + counts[1])
        self.e *= predicted / rho if canary else (1.0 - predicted) / (1.0 - rho)
        self.e = min(max(self.e, LEAST), MOST)
        counts[0] += canary
        counts[1] += 1
