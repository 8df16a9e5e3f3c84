"""The guard on crashes: two or three failures of the canary in a row end it, of a function that is healthy otherwise.

It sees the canary's calls alone, against the rate of failures that would still be no alarm: twice the old version's
and one percent, or what the old version does just now. It is exact as long as that rate is.
"""

from __future__ import annotations

import msgspec

from pilotlight_gateway.judging.guards.wealth import bounded_wealth

RATES = (0.05, 0.15, 0.4, 0.9)
LEAST_RATE = 0.02
KNOWN_CALLS = 200
"""Before the old version has made so many, its rate is guessed from above."""
LAST = 8
"""Of the old version's calls tell whether both sides fail just now."""


class CrashGuard(msgspec.Struct):
    """What bets on crashes have won."""

    wealth: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(RATES))
    e: float = 1.0
    canary: int = 0
    """Failures of the canary."""
    other: int = 0
    """Failures of the old version, with those of its history."""
    other_calls: int = 0
    last: int = 0
    """A bit for each of the old version's last calls: 1 if it failed."""

    @property
    def rate(self) -> float:
        """The rate of failures that is no alarm."""
        known = self.other_calls >= KNOWN_CALLS
        usual = self.other / self.other_calls if known else (self.other + 1) / (self.other_calls + 20)
        return min(max(LEAST_RATE, 2.0 * usual + 0.01, 2.0 * self.last.bit_count() / LAST), 1.0)

    def note_other(self, *, failed: bool) -> None:
        """A call of the old version ended."""
        self.other += failed
        self.other_calls += 1
        self.last = (self.last << 1 | failed) & (1 << LAST) - 1

    def note(self, *, failed: bool) -> None:
        """A call of the canary ended."""
        self.canary += failed
        self._multiply(self.factors(failed=failed))

    def factors(self, *, failed: bool) -> list[float]:
        """What the bets are multiplied by now; bets on rates that would be no alarm rest."""
        least = self.rate
        return [
            1.0 if rate <= least else rate / least if failed else (1.0 - rate) / (1.0 - least) for rate in RATES
        ]  # fmt: skip

    def undo(self, factors: list[float]) -> None:
        """A failure, with the factors it had, was nobody's."""
        self.canary -= 1
        self._multiply([1.0 / factor for factor in factors])

    def _multiply(self, factors: list[float]) -> None:
        self.wealth = bounded_wealth([wealth * factor for wealth, factor in zip(self.wealth, factors, strict=True)])
        self.e = sum(self.wealth) / len(RATES)
