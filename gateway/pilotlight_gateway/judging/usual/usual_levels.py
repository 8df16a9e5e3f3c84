"""What other amounts usually are, such as times to the first token: a middle and a spread of the old version's."""

from __future__ import annotations

import math

import msgspec

from pilotlight_gateway.judging.usual.robust import mad_of, median_of
from pilotlight_gateway.judging.usual.usual_amounts import LEAST_SPREAD

REFITTED_AT = frozenset({8, 16, 32, 50, 100})
MOST_SAMPLES = 100
MOST_LEVELS = 16
LEAST_LINEAR = 1e-9


class UsualLevel(msgspec.Struct):
    """Of one amount: of its logarithm, or of itself where it may be 0 or less."""

    samples: list[float] = []
    middle: float = 0.0
    spread: float = 0.0
    """Three standard deviations; 0: too little is known."""
    is_log: bool = True

    def learn(self, amount: float, least: int) -> None:
        """An amount of the old version; without `least` of them nothing is known."""
        if len(self.samples) >= MOST_SAMPLES:
            return
        self.samples.append(amount)
        if len(self.samples) in REFITTED_AT and len(self.samples) >= least:
            self.is_log = min(self.samples) > 0.0
            values = [math.log(each) for each in self.samples] if self.is_log else self.samples
            self.middle = median_of(values)
            self.spread = 3.0 * max(mad_of(values), LEAST_SPREAD if self.is_log else LEAST_LINEAR)

    def residual(self, amount: float) -> float | None:
        """How far an amount is above the middle; None: too little is known, or it cannot be said."""
        if self.spread <= 0.0 or (self.is_log and amount <= 0.0):
            return None
        return (math.log(amount) if self.is_log else amount) - self.middle

    def tolerance(self, part: float) -> float:
        """What a tolerated part is on this scale."""
        return math.log1p(part) if self.is_log else abs(self.middle) * part
