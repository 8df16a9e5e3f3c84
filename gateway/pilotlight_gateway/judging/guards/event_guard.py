"""A guard on events, such as failures: a bet that they happen more often on the canary's side.

If the canary is no worse, an event that happened is the canary's with the probability `rho` with which its call was
sent there. For each ratio `r` the bet's wealth is multiplied by `r / (1 - rho + rho r)` if it is, and by
`1 / (1 - rho + rho r)` if not: the expectation is 1. Calls without an event change nothing. `e` is the mean wealth.
"""

from __future__ import annotations

import msgspec

from pilotlight_gateway.judging.guards.wealth import bounded_wealth

RATIOS = (1.15, 1.35, 1.7, 2.3, 3.5, 6.0, 12.0, 30.0)
"""How much more often events may be, each with a bet of its own."""


class EventGuard(msgspec.Struct):
    """What bets on events have won."""

    wealth: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(RATIOS))
    e: float = 1.0
    canary: int = 0
    """Events on the canary's side."""
    other: int = 0

    def note(self, *, canary: bool, rho: float) -> None:
        """An event happened."""
        if not 0.0 < rho < 1.0:
            return
        rest = 1.0 - rho
        if canary:
            self.canary += 1
            after = [wealth * ratio / (rest + rho * ratio) for wealth, ratio in zip(self.wealth, RATIOS, strict=True)]
        else:
            self.other += 1
            after = [wealth / (rest + rho * ratio) for wealth, ratio in zip(self.wealth, RATIOS, strict=True)]
        self.wealth = bounded_wealth(after)
        self.e = sum(self.wealth) / len(RATIOS)
