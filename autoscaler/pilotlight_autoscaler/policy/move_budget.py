"""A budget of moves of running containers per hour. Pure: time is an argument (seconds)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

HOUR_S = 3600.0
PER_HOUR = 60


@dataclass(kw_only=True)
class MoveBudget:
    """At most `per_hour` moves within any hour; 0: none.

    Each move is charged to the tenant for whose container room is made, or to "" if a device is emptied. A tenant that
    has had as many moves as are left for all begins no further one, so that no tenant uses up the budget.
    """

    per_hour: int = PER_HOUR
    _moves: deque[tuple[float, str]] = field(default_factory=deque)

    def left(self, at: float) -> int:
        while self._moves and at - self._moves[0][0] >= HOUR_S:
            self._moves.popleft()
        return max(0, self.per_hour - len(self._moves))

    def allows(self, at: float, tenant: str) -> bool:
        return sum(mover == tenant for _, mover in self._moves) < self.left(at)

    def spend(self, at: float, tenant: str = "") -> None:
        self._moves.append((at, tenant))

    def refusal_for(self, at: float, tenant: str = "") -> str:
        """Why no move may begin for a tenant now, or ""."""
        left = self.left(at)
        if self.allows(at, tenant):
            return ""
        if not self.per_hour:
            return "running containers are not moved to make room (--moves-per-hour 0)"
        minutes = -(-(self._moves[0][0] + HOUR_S - at) // 60)
        if left:
            own = sum(mover == tenant for _, mover in self._moves)
            return (
                f"{own} containers were moved for {tenant} in the last hour, and the {left} that may be moved still "
                f"(--moves-per-hour) are for others: the next may be in {minutes:.0f} min"
            )
        return (
            f"{len(self._moves)} containers were moved in the last hour, which is as many as may be "
            f"(--moves-per-hour): the next may be in {minutes:.0f} min"
        )
