"""How many running containers may be moved in an hour. Pure: time is an argument (seconds)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

HOUR_S = 3600.0
PER_HOUR = 60


@dataclass(kw_only=True)
class MoveBudget:
    """At most `per_hour` moves within any hour; 0 is none at all."""

    per_hour: int = PER_HOUR
    _moves: deque[float] = field(default_factory=deque)

    def left(self, at: float) -> int:
        """Moves that may still begin now."""
        while self._moves and at - self._moves[0] >= HOUR_S:
            self._moves.popleft()
        return max(0, self.per_hour - len(self._moves))

    def spend(self, at: float) -> None:
        """A move has begun."""
        self._moves.append(at)

    def why_none(self, at: float) -> str:
        """Why nothing is moved now; "" if something may be."""
        if self.left(at):
            return ""
        if not self.per_hour:
            return "running containers are not moved to make room (--moves-per-hour 0)"
        minutes = -(-(self._moves[0] + HOUR_S - at) // 60)
        return (
            f"{len(self._moves)} containers were moved in the last hour, which is as many as may be "
            f"(--moves-per-hour): the next may be in {minutes:.0f} min"
        )
