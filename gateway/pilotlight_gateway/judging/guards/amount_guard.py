"""A guard on amounts of which less is better, such as times: a bet that scores are higher on the canary's side.

The score `s` of a call is the distance of its amount from what the old version usually takes, over three times the
usual spread, within [-1, 1]. With `a` 1 for the canary and 0 else, `z = (a - rho) s / max(rho, 1 - rho)` has the
expectation 0 if the canary's scores are as the old version's, whatever those are: a busy hour moves both. Each stake
`b` multiplies its wealth by `1 + b z`; `e` is the mean wealth.
"""

from __future__ import annotations

import math

import msgspec

from pilotlight_gateway.judging.guards.wealth import LEAST, MOST, bounded_wealth, clipped

STAKES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


class AmountGuard(msgspec.Struct):
    """What bets on amounts have won."""

    wealth: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(STAKES))
    e: float = 1.0
    canary: int = 0
    """Observations of the canary."""
    other: int = 0
    canary_sum: float = 0.0
    """Of logarithms over what was expected, clipped: for the estimate."""
    other_sum: float = 0.0
    canary_squares: float | None = None
    """Of the same; None: it was begun by a release that kept none, so nobody knows how sure the estimate is."""
    other_squares: float | None = None

    def note(self, *, canary: bool, rho: float, score: float, residual: float = 0.0) -> None:
        """An observation: its score, and `residual`, the clipped logarithm of its amount over the expected one."""
        if not 0.0 < rho < 1.0:
            return
        if canary:
            self.canary += 1
            self.canary_sum += residual
            if self.canary_squares is not None:
                self.canary_squares += residual * residual
        else:
            self.other += 1
            self.other_sum += residual
            if self.other_squares is not None:
                self.other_squares += residual * residual
        z = lever_of(canary=canary, rho=rho) * score
        self.wealth = after = [wealth * (1.0 + stake * z) for wealth, stake in zip(self.wealth, STAKES)]  # noqa: B905
        self.e = e = sum(after) / len(STAKES)
        if after[-1] < LEAST or e > MOST:
            self.wealth = bounded_wealth(after)

    @property
    def effect(self) -> float | None:
        """By which part the canary's amounts are above the others', as estimated; None: one side has none."""
        if not self.canary or not self.other:
            return None
        return math.expm1(self.canary_sum / self.canary - self.other_sum / self.other)


def lever_of(*, canary: bool, rho: float) -> float:
    """`(a - rho) / max(rho, 1 - rho)`: how much of its score a call on this side puts at stake."""
    return ((1.0 - rho) if canary else -rho) / (rho if rho > 0.5 else 1.0 - rho)


def scores_of(residual: float, spread: float, *, canary: bool, tolerance: float) -> tuple[float, float]:
    """The score and the clipped residual of a logarithm that is `residual` above the expected one.

    `spread`: three times the usual one. `tolerance`: the logarithm of 1 + the tolerated part, taken off the canary's.
    """
    own = clipped(residual / spread)
    return clipped((residual - tolerance) / spread) if canary else own, own * spread
