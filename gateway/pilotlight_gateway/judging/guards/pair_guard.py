"""The guard on pairs: shadows of both versions had the same input on the same device, one after the other.

`z` is the logarithm of what the canary cost over what the old version did, less the tolerance, over three times the
usual spread of pairs, within [-1, 1]. The spread is that of the pairs before, so the first ones are not judged.

Half of the bets take it over one and a half times the usual spread. Where machines are busy, most of what pairs say is
in their middle, and what is far out is the machine's; where a part of the inputs is much dearer it is the other way
round. An equal version is above by as much as often as below, so the mean of all bets wins nothing on average.
"""

from __future__ import annotations

import math

import msgspec

from pilotlight_gateway.judging.guards.wealth import bounded_wealth, clipped
from pilotlight_gateway.judging.usual.robust import mad_of

STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)
NEAR = 2.0
"""How much nearer the other half of the bets looks."""
FIRST = 20
"""Pairs that are not judged."""
MOST = 640
"""Pairs after which the spread stays as it is."""
LEAST_SPREAD = 1e-3
"""Of a logarithm: clocks have no more."""


def _after(wealth: list[float], z: float) -> list[float]:
    """What each stake has won after a pair whose score is `z`."""
    return bounded_wealth([one * (1.0 + stake * z) for one, stake in zip(wealth, STAKES, strict=True)])


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
    near: list[float] | None = None
    """What the bets have won that look nearer; None: it was begun by a release that made none."""

    def note(self, canary: float, other: float, tolerance: float) -> None:
        """Both shadows of an input ran, and cost so much; `tolerance`: the logarithm of 1 + the tolerated part."""
        if canary <= 0.0 or other <= 0.0:
            return
        ratio = math.log(canary / other)
        if self.spread > 0.0:
            score = (ratio - tolerance) / self.spread
            self.wealth = _after(self.wealth, clipped(score))
            self.e = sum(self.wealth) / len(STAKES)
            if self.near is not None:
                self.near = _after(self.near, clipped(score * NEAR))
                self.e = 0.5 * (self.e + sum(self.near) / len(STAKES))
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
