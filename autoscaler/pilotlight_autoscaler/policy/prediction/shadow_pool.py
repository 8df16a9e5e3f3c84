"""The choice among methods, by what each would have cost on the function's own recent past. Pure.

Every minute each method is charged as if it alone had decided: a container that was there and not needed costs a minute
of idle time, one that was needed and there half a minute, since it was there when the minute began, and one that was
needed and not there a cold start. What the function's window keeps anyway is charged to nobody. Older minutes count
less.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from pilotlight_autoscaler.policy.prediction.minute_methods import MinuteMethod

HALF_LIFE_MINUTES = 1_440.0
DECAY = 0.5 ** (1 / HALF_LIFE_MINUTES)
NOTHING = "nothing"
"""The method that keeps no container."""
BETTER = 0.95
"""Another method is chosen if it would have cost less than this part of what the present one would have."""


class ShadowCost(NamedTuple):
    """What a method would have cost, the recent past more."""

    idle_minutes: float = 0.0
    cold: float = 0.0

    def total(self, worth: float) -> float:
        """In idle minutes, if a cold start is worth so many."""
        return self.idle_minutes + worth * self.cold


class ShadowPool:
    """The methods of one function, and what each would have cost."""

    def __init__(
        self, methods: Mapping[str, MinuteMethod], window: int, costs: Mapping[str, ShadowCost] | None = None
    ) -> None:
        """`methods` by name, with `NOTHING` among them; `window`: minutes for which containers stay anyway."""
        self._methods = dict(methods)
        self.recent: deque[int] = deque(maxlen=max(1, window))
        """What was needed in the minutes for which containers stay."""
        known = costs or {}
        self.costs = {name: known.get(name, ShadowCost()) for name in self._methods}
        self.chosen = NOTHING

    def observe(self, needed: int, worth: float) -> None:
        """A minute ended; a cold start is worth so many idle minutes."""
        kept = max(self.recent, default=0)
        for name, method in self._methods.items():
            level = method.level()
            idle, cold = self.costs[name]
            used, unused = max(0, min(level, needed) - kept), max(0, level - max(kept, needed))
            missing = max(0, needed - max(kept, level))
            self.costs[name] = ShadowCost(idle * DECAY + unused + used / 2, cold * DECAY + missing)
            method.observe(needed)
        self.recent.append(needed)
        self._choose(worth)

    def set_window(self, minutes: int) -> None:
        """From now on containers stay so long anyway."""
        self.recent = deque(self.recent, maxlen=max(1, minutes))

    def level(self) -> int:
        """Containers that should be there in the next minute, by the chosen method."""
        return self._methods[self.chosen].level()

    def levels(self) -> dict[str, int]:
        """The same by each method."""
        return {name: method.level() for name, method in self._methods.items()}

    def _choose(self, worth: float) -> None:
        best = min(self.costs, key=lambda name: (self.costs[name].total(worth), name != NOTHING, name))
        if self.costs[best].total(worth) < BETTER * self.costs[self.chosen].total(worth):
            self.chosen = best
