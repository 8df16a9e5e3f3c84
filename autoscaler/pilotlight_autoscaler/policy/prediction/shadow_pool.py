"""The choice among methods, by what each would have cost on the function's own recent past. Pure.

Every minute each method is charged as if it alone had decided: a container that was there and not needed costs a minute
of idle time, one that was needed and there half a minute, since it was there when the minute began, and one that was
needed and not there a cold start. What the function's window keeps anyway is charged to nobody. Older minutes count
less. Before anything is known of a function, each is charged for one idle time of a prior, which knows that of many
functions.

In a minute with calls the cheapest is chosen, by what a cold start is worth in idle minutes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pilotlight_autoscaler.policy.prediction.minute_methods import FixedWarmth, MinuteMethod, PlannedWarmth

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
        self.recent: deque[int] = deque(maxlen=window)
        """What was needed in the minutes for which containers stay."""
        known = costs or {}
        self.costs = {name: known.get(name, ShadowCost()) for name in self._methods}

    def observe(self, needed: int) -> dict[str, int]:
        """A minute ended; what each method had there."""
        kept, costs = max(self.recent, default=0), self.costs
        had, levels = max(kept, needed), {}
        for name, method in self._methods.items():
            levels[name] = level = method.level()
            idle, cold = costs[name]
            idle, cold = idle * DECAY, cold * DECAY
            if level > had:
                idle += level - had
            if needed > kept:
                used = min(level, needed)
                idle += max(0, used - kept) / 2
                cold += needed - max(kept, used)
            costs[name] = ShadowCost(idle, cold)
            method.observe(needed)
        self.recent.append(needed)
        return levels

    def resume(self, ages: Sequence[int | None]) -> None:
        """So many minutes ago each level of concurrency was needed last; None: never."""
        for method in self._methods.values():
            if isinstance(method, FixedWarmth | PlannedWarmth):
                method.resume(ages)

    def set_window(self, minutes: int) -> None:
        """From now on containers stay so long anyway."""
        self.recent = deque(self.recent, maxlen=minutes)

    def level(self, method: str) -> int:
        """Containers that should be there in the next minute, by a method."""
        return self._methods[method].level()


class MethodChoice:
    """Which method decides, by costs and by what those of a function are of which nothing is known."""

    def __init__(self, priors: Mapping[str, ShadowCost], chosen: str = "") -> None:
        """`priors`: of the methods to choose from."""
        self._priors = dict(priors)
        self.chosen = chosen

    def choose(self, costs: Mapping[str, ShadowCost], worth: float, age_minutes: int) -> None:
        """Choose the one that would have cost least; the one chosen before, if none is better by a twentieth.

        Args:
            worth: of a cold start, in idle minutes.
            age_minutes: for so long the function is known.
        """
        weight = DECAY**age_minutes
        totals = {name: costs[name].total(worth) + weight * prior.total(worth) for name, prior in self._priors.items()}
        best = min(totals, key=lambda name: (totals[name], name != NOTHING, name))
        if self.chosen not in totals or totals[best] < BETTER * totals[self.chosen]:
            self.chosen = best

    def change_prior(self, method: str, prior: ShadowCost) -> None:
        """From now on a method would cost an unknown function something else."""
        self._priors[method] = prior
