"""The guard on pairs: shadows of both versions had the same input on the same device, one after the other.

`z` is the logarithm of what the canary cost over what the old version did, less the tolerance, over three times the
usual spread of pairs, within [-1, 1]. The spread is that of the pairs before, so the first ones are not judged.
"""

from __future__ import annotations

import math

import msgspec

from pilotlight_gateway.judging.guards.wealth import bounded_wealth, clipped
from pilotlight_gateway.judging.usual.robust import mad_of

STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)
FIRST = 20
"""Pairs that are not judged."""
MOST = 640
"""Pairs after which the spread stays as it is."""
LEAST_SPREAD = 1e-3
"""Of a logarithm: clocks have no more."""


class PairGuard(msgspec.Struct):
    """What bets on pairs have won."""

    wealth: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(STAKES))
    e: float = 1.0
    pairs: int = 0
    ratios: list[float] = []
    """Logarithms, of the first `MOST` pairs."""
    spread: float = 0.0
    """Three times the usual one; 0: not known yet."""
    total: float = 0.0
    """Of the ratios, clipped: for the estimate."""
    squares: float | None = None
    """Of the same; None: it was begun by a release that kept none."""

    def note(self, canary: float, other: float, tolerance: float) -> None:
        """Both shadows of an input ran, and cost so much; `tolerance`: the logarithm of 1 + the tolerated part."""
        if canary <= 0.0 or other <= 0.0:
            return
        ratio = math.log(canary / other)
        if self.spread > 0.0:
            z = clipped((ratio - tolerance) / self.spread)
            self.wealth = bounded_wealth(
                [wealth * (1.0 + stake * z) for wealth, stake in zip(self.wealth, STAKES, strict=True)]
            )
            self.e = sum(self.wealth) / len(STAKES)
            told = clipped(ratio / self.spread) * self.spread
            self.total += told
            if self.squares is not None:
                self.squares += told * told
        self.pairs += 1
        if self.pairs <= MOST:
            self.ratios.append(ratio)
            doublings = self.pairs // FIRST
            if self.pairs % FIRST == 0 and doublings & (doublings - 1) == 0:
                self.spread = 3.0 * max(mad_of(self.ratios), LEAST_SPREAD)
            if self.pairs == MOST:
                self.ratios = []

    @property
    def effect(self) -> float | None:
        """By which part the canary costs more, as estimated; None: not known yet."""
        judged = self.pairs - FIRST
        return math.expm1(self.total / judged) if judged > 0 else None
