"""How often a function may be warmed in vain. Pure.

A prewarm is a span of minutes in which a forecast has containers there that nothing else asks for. Each uses up one of
the day's; one that nobody used halves how many a day has, one that was used doubles them, up to `MOST`.
"""

from __future__ import annotations

MOST, LEAST = 64, 1
FIRST = 16
DAY_MINUTES = 1_440


class PrewarmBudget:
    """The prewarms of one function."""

    def __init__(self, per_day: int = FIRST) -> None:
        self.per_day = per_day
        self._left = per_day
        self._minutes = 0
        self._span = 0
        """The most containers of the prewarm that goes on; 0: none does."""
        self._used = False

    def allowed(self, level: int) -> int:
        """How many of the containers that a forecast asks for may be there: all, or none."""
        return level if self._span or self._left > 0 else 0

    def observe(self, prewarmed: int, needed: int) -> None:
        """A minute ended, in which so many containers were there for a forecast alone, and so many were needed."""
        self._minutes += 1
        if self._minutes >= DAY_MINUTES:
            self._minutes, self._left = 0, self.per_day
        if prewarmed and not self._span:
            self._left -= 1
        if prewarmed:
            self._used = self._used or (self._span > 0 and needed > 0)  # its first minute may be that of a call
            self._span = max(self._span, prewarmed)
        elif self._span:
            self._end(used=self._used or needed > 0)

    def _end(self, *, used: bool) -> None:
        self.per_day = min(MOST, 2 * self.per_day) if used else max(LEAST, self.per_day // 2)
        self._left = min(self._left + self.per_day, self.per_day) if used else min(self._left, self.per_day)
        self._span, self._used = 0, False
