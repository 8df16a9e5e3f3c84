"""A forecast of how many containers a busy function needs in the next minutes. Pure.

Damped Holt smoothing (Gardner and McKenzie, Management Science 31, 1985) and an upper quantile of its own recent errors
at the same distance: the smoothing says what is usual, the errors how far to trust it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from typing import Final

LEVEL_PART: Final = 0.5
TREND_PART: Final = 0.1
DAMPING: Final = 0.9
ERRORS: Final = 100
"""The latest ones, of which the quantile is taken."""


class HoltForecast:
    """Of one series of whole numbers, one each minute, a few minutes ahead."""

    def __init__(self, lead: int = 1, *, level: float = 0.0, trend: float = 0.0, errors: Iterable[float] = ()) -> None:
        """`lead`: minutes ahead, at least one; the others are what another one of the series has learnt."""
        self._lead = lead
        self._weight = sum(DAMPING**minute for minute in range(1, lead + 1))
        self.level = level
        self.trend = trend
        self.errors: deque[float] = deque(errors, maxlen=ERRORS)
        self._ordered = sorted(self.errors)
        self._made: deque[float] = deque(maxlen=lead)

    def observe(self, needed: float) -> None:
        """A minute ended."""
        if len(self._made) == self._lead:
            self._add_error(needed - self._made[0])
        before, damped = self.level, DAMPING * self.trend
        self.level = LEVEL_PART * needed + (1 - LEVEL_PART) * (before + damped)
        self.trend = TREND_PART * (self.level - before) + (1 - TREND_PART) * damped
        self._made.append(self.mean())

    def mean(self) -> float:
        """What is expected `lead` minutes ahead."""
        return max(0.0, self.level + self._weight * self.trend)

    def bound(self, quantile: float) -> float:
        """What is not exceeded in the part `quantile` of cases."""
        ordered = self._ordered
        if not ordered:
            return 0.0
        return max(0.0, self.mean() + ordered[min(len(ordered) - 1, int(quantile * len(ordered)))])

    def _add_error(self, error: float) -> None:
        if len(self.errors) == ERRORS:
            del self._ordered[bisect_left(self._ordered, self.errors[0])]
        self.errors.append(error)
        insort(self._ordered, error)
