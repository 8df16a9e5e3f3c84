"""What calls will cost, by what those of the same version cost before."""

from __future__ import annotations

from cachetools import FIFOCache

from pilotlight_core.model.ewma import ewma

FIRST = 100.0
"""GPU-milliseconds of a call of which nothing is known. The end corrects it."""
SMOOTHING = 0.1
MOST_KNOWN = 10_000
"""Versions; the one that was learnt of longest ago is forgotten first."""


class Estimates:
    """Smoothed costs of what this gateway has seen, in GPU-milliseconds."""

    def __init__(self) -> None:
        self._costs: FIFOCache[str, float] = FIFOCache(MOST_KNOWN)

    def of(self, version: str) -> float:
        """What its next call is taken to cost."""
        return self._costs.get(version, FIRST)

    def learn(self, version: str, cost: float) -> None:
        """One of its calls has cost this much."""
        self._costs[version] = ewma(self._costs.get(version), cost, SMOOTHING)
