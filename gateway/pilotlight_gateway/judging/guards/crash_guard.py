"""The guard on crashes: two or three failures of the canary in a row end it, of a function that is healthy otherwise.

It sees the canary's calls alone, against the rate of failures that would still be no alarm: twice the old version's
and one percent, or what the old version does just now. It is exact as long as that rate is.

Where the old version is asked the same, an input on which it fails too is left out. Until it has answered, a failure is
in doubt: it counts in `e`, and stands apart from the wealth. So taking it back leaves each bit as if it had never been
told, and `firm_e`, which only rises by what nobody takes back, is what the promise about false alarms is of.
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
MOST_DOUBTED = 64
"""Failures in doubt; the oldest of more counts for good."""
DOUBTED_S = 600.0
"""After which one counts for good: the gateway that asked may be gone, and nobody rolls back by doubts of yesterday."""
MOST_BLAMED = 128
"""Causes whose failure counts for good."""


class DoubtedFailure(msgspec.Struct, frozen=True, array_like=True):
    """A failure of the canary on an input that the old version is asked too."""

    call_id: str
    at: float
    """Unix seconds."""
    causes: tuple[str, ...]
    """What it shares with others, such as a container that died: they are one failure."""
    factors: tuple[float, ...]
    """Of the bets, when it was told."""


class CrashGuard(msgspec.Struct):
    """What bets on crashes have won."""

    wealth: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(RATES))
    e: float = 1.0
    firm_e: float = 1.0
    """The same without the failures that are in doubt."""
    canary: int = 0
    """Failures of the canary, without those in doubt."""
    other: int = 0
    """Failures of the old version, with those of its history."""
    other_calls: int = 0
    last: int = 0
    """A bit for each of the old version's last calls: 1 if it failed."""
    doubted: list[DoubtedFailure] = []
    """As they were told."""
    blamed: dict[str, float] = {}
    """The last causes whose failure counts for good."""

    @property
    def failures(self) -> int:
        """Those of the canary."""
        return self.canary + len(self._counted())

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

    def note(self, *, failed: bool, causes: tuple[str, ...] = ()) -> None:
        """A call of the canary ended. Failures that share one of their `causes` are one."""
        if failed:
            self._blame(causes, self.factors(failed=True))
        else:
            self._multiply(self.factors(failed=False))
        self._weigh()

    def note_doubted(self, call_id: str, at: float, causes: tuple[str, ...]) -> None:
        """A call of the canary failed, and the old version is asked the same: `resolve` says what that came to."""
        if any(one.call_id == call_id for one in self.doubted):
            return
        self.doubted.append(DoubtedFailure(call_id, at, causes, self.factors(failed=True)))
        if len(self.doubted) > MOST_DOUBTED:
            self._settle(self.doubted.pop(0))
        self._weigh()

    def resolve(self, call_id: str, *, failed: bool) -> bool:
        """The old version has answered: whether the failure was the canary's alone. Returns whether it was in doubt."""
        for one in self.doubted:
            if one.call_id == call_id:
                self.doubted.remove(one)
                if failed:
                    self._settle(one)
                self._weigh()
                return True
        return False

    def settle(self, at: float) -> None:
        """Count for good what has been in doubt for too long at the unix second `at`."""
        while self.doubted and self.doubted[0].at + DOUBTED_S < at:
            self._settle(self.doubted.pop(0))
        self._weigh()

    def factors(self, *, failed: bool) -> tuple[float, ...]:
        """What the bets are multiplied by now; bets on rates that would be no alarm rest."""
        least = self.rate
        return tuple([
            1.0 if rate <= least else rate / least if failed else (1.0 - rate) / (1.0 - least) for rate in RATES
        ])  # fmt: skip

    def _settle(self, one: DoubtedFailure) -> None:
        self._blame(one.causes, one.factors)

    def _blame(self, causes: tuple[str, ...], factors: tuple[float, ...]) -> None:
        """A failure counts for good, if none of its causes has before."""
        if any(cause in self.blamed for cause in causes):
            return
        for cause in causes:
            self.blamed[cause] = 1.0
            if len(self.blamed) > MOST_BLAMED:
                del self.blamed[next(iter(self.blamed))]
        self.canary += 1
        self._multiply(factors)

    def _multiply(self, factors: tuple[float, ...]) -> None:
        self.wealth = bounded_wealth([wealth * factor for wealth, factor in zip(self.wealth, factors, strict=True)])

    def _weigh(self) -> None:
        """Work out what the bets have won, with and without what is in doubt."""
        wealth = self.wealth
        self.firm_e = self.e = sum(wealth) / len(RATES)
        if self.doubted:
            for one in self._counted():
                wealth = [each * factor for each, factor in zip(wealth, one.factors, strict=True)]
            self.e = sum(bounded_wealth(wealth)) / len(RATES)

    def _counted(self) -> list[DoubtedFailure]:
        """Of those in doubt, the first of each cause that is not blamed."""
        found, causes = [], set(self.blamed) if self.doubted else set()
        for one in self.doubted:
            if causes.isdisjoint(one.causes):
                found.append(one)
                causes.update(one.causes)
        return found
