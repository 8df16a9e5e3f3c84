"""Estimates what a call takes from earlier calls of its version: GPU-milliseconds, or tokens."""

from __future__ import annotations

from cachetools import FIFOCache

from pilotlight_core.model.ewma import ewma

FIRST = 100.0
"""GPU-milliseconds of the first call of a version; its end corrects the count."""
SMOOTHING = 0.1
MOST_KNOWN = 10_000
"""Versions; beyond it the one that was learnt first is forgotten."""


class Estimates:
    """Smoothed costs and tokens of the versions that this gateway has seen."""

    def __init__(self) -> None:
        self._costs: FIFOCache[str, float] = FIFOCache(MOST_KNOWN)
        self._tokens: FIFOCache[str, float] = FIFOCache(MOST_KNOWN)

    def of(self, version: str) -> float:
        return self._costs.get(version, FIRST)

    def learn(self, version: str, cost: float) -> None:
        self._costs[version] = ewma(self._costs.get(version), cost, SMOOTHING)

    def tokens_of(self, version: str) -> float:
        """0.0 before the first call that counted some has ended."""
        return self._tokens.get(version, 0.0)

    def learn_tokens(self, version: str, tokens: float) -> None:
        self._tokens[version] = ewma(self._tokens.get(version), tokens, SMOOTHING)
