"""Whether a pool of spot machines needs a spare, by the part of the time in which it lately had less than was wanted.

A machine that is taken away is missed for as long as a start takes, whatever stands in for it; only one that is ready
before closes that gap, and one that stands by all the time costs as much as another does. So it stands by only while
the pool falls short of its goal. The past fades: half of it counts after a week.
"""

from __future__ import annotations

GOAL = 0.984
"""Of the time with as many as wanted."""
HALF_LIFE_S = 7 * 86_400.0
PRIOR_S = 86_400.0
"""A pool begins as if it had been whole for so long: its first start proves nothing."""


class CapacityGoal:
    """Instants are seconds of any one clock."""

    def __init__(self, goal: float = GOAL) -> None:
        self._goal = goal
        self._whole_s = PRIOR_S
        self._short_s = 0.0
        self._at: float | None = None

    def note(self, at: float, *, is_short: bool) -> None:
        """From the last instant until this one the pool had less than was wanted, or not."""
        elapsed, self._at = (0.0 if self._at is None else max(0.0, at - self._at)), at
        kept = 0.5 ** (elapsed / HALF_LIFE_S)
        self._whole_s *= kept
        self._short_s *= kept
        if is_short:
            self._short_s += elapsed
        else:
            self._whole_s += elapsed

    @property
    def share(self) -> float:
        """The part of the time, lately, with as many as wanted."""
        return self._whole_s / (self._whole_s + self._short_s)

    @property
    def spares(self) -> int:
        """How many are to stand by."""
        return int(self.share < self._goal)
