"""Estimates the cost of a call from earlier calls of its version."""

from __future__ import annotations

from cachetools import FIFOCache

from pilotlight_core.model.ewma import ewma

FIRST = 100.0
"""GPU-milliseconds of the first call of a version; its end corrects the count."""
SMOOTHING = 0.1
MOST_KNOWN = 10_000
"""Versions; beyond it the one that was learnt first is forgotten."""


class Estimates:
    """Smoothed costs of the versions that this gateway has seen, in GPU-milliseconds."""

    def __init__(self) -> None:
        self._costs: FIFOCache[str, float] = FIFOCache(MOST_KNOWN)

    def of(self, version: str) -> float:
        return self._costs.get(version, FIRST)

    def learn(self, version: str, cost: float) -> None:
        self._costs[version] = ewma(self._costs.get(version), cost, SMOOTHING)
