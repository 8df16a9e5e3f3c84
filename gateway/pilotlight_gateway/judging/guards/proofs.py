"""Proofs that the canary is not worse by a part: the guards' bets mirrored.

For each part `x` the claim "the canary is worse by `x` or more" is bet against, with the canary's amounts divided by
1 + x: if the claim holds, the expectation of each factor is at most 1. A wealth of `PROVEN` refutes it: `verified
within x`. At most one of 20 true claims is ever refuted so.
"""

from __future__ import annotations

import math

import msgspec

from pilotlight_gateway.judging.guards.amount_guard import lever_of
from pilotlight_gateway.judging.guards.wealth import LEAST, bounded_wealth, clipped

PARTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
PROVEN = 20.0
STAKES = (0.05, 0.15, 0.4, 0.8)
RATIOS = (0.9, 0.75, 0.5, 0.25)
"""How much rarer events may be than the claim says, each with a bet of its own."""
_LOGS = tuple(math.log1p(part) for part in PARTS)


class AmountProof(msgspec.Struct):
    """Of an amount."""

    wealth: list[list[float]] = msgspec.field(default_factory=lambda: [[1.0] * len(STAKES) for _ in PARTS])
    """By part; those at and above `proven` are done with."""
    proven: int = len(PARTS)
    """Place of the least proven part in `PARTS`; its length: none is."""

    @property
    def within(self) -> float | None:
        return PARTS[self.proven] if self.proven < len(PARTS) else None

    def note(self, *, canary: bool, rho: float, residual: float, spread: float) -> None:
        """An observation, as `scores_of` has it."""
        if not 0.0 < rho < 1.0:
            return
        lever = -lever_of(canary=canary, rho=rho)
        factors = [1.0 + stake * lever * clipped(residual / spread) for stake in STAKES]
        for place in range(self.proven):
            if canary:  # of the old version's calls the claim changes nothing
                z = lever * clipped((residual - _LOGS[place]) / spread)
                factors = [1.0 + stake * z for stake in STAKES]
            self.wealth[place] = after = [wealth * factor for wealth, factor in zip(self.wealth[place], factors)]  # noqa: B905
            if after[-1] < LEAST:
                self.wealth[place] = bounded_wealth(after)
            elif sum(after) >= PROVEN * len(STAKES):
                self.proven = place  # what is within 2 % is within 5 % too
                break


class EventProof(msgspec.Struct):
    """Of events: given that one happened, it is the canary's with at least the probability that the claim says."""

    wealth: list[list[float]] = msgspec.field(default_factory=lambda: [[1.0] * len(RATIOS) for _ in PARTS])
    proven: int = len(PARTS)

    @property
    def within(self) -> float | None:
        return PARTS[self.proven] if self.proven < len(PARTS) else None

    def note(self, *, canary: bool, rho: float) -> None:
        if not 0.0 < rho < 1.0:
            return
        for place in range(self.proven):
            claimed = _part_of(rho, 1.0 + PARTS[place])
            rarer = [_part_of(rho, (1.0 + PARTS[place]) * ratio) for ratio in RATIOS]
            factors = [part / claimed if canary else (1.0 - part) / (1.0 - claimed) for part in rarer]
            after = [wealth * factor for wealth, factor in zip(self.wealth[place], factors, strict=True)]
            self.wealth[place] = bounded_wealth(after)
            if sum(after) >= PROVEN * len(RATIOS):
                self.proven = place
                break


def _part_of(rho: float, ratio: float) -> float:
    """The part of events that are the canary's where they are `ratio` times as frequent there."""
    return rho * ratio / (1.0 - rho + rho * ratio)
