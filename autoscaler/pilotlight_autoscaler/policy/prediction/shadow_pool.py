"""The choice among methods, by what each would have cost on the function's own recent past. Pure.

Every minute each method is charged as if it alone had decided: a container that was there and not needed costs a minute
of idle time, one that was needed and there half a minute, since it was there when the minute began, and one that was
needed and not there a cold start. What the function's window keeps anyway is charged to nobody. Older minutes count
less. Before anything is known of a function, each is charged for one idle time of a prior, which knows that of many
functions.

In a minute with calls the cheapest is chosen, by what a cold start is worth in idle minutes. The one that weighs what
all others go by is chosen unless another one is clearly cheaper.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pilotlight_autoscaler.policy.prediction.call_chances import MOST_KEPT
from pilotlight_autoscaler.policy.prediction.minute_methods import FixedWarmth, MinuteMethod, PlannedWarmth

HALF_LIFE_MINUTES: Final = 1_440.0
DECAY: Final = 0.5 ** (1 / HALF_LIFE_MINUTES)
NOTHING = "nothing"
"""The method that keeps no container."""
LIKELY = "likely"
"""The one that weighs what all others go by."""
NEVER: Final = 10**9
MOST_UNIT: Final = 1e6
WORSE, STARTS_WORSE = 0.8, 3.0
"""The others are charged for their costs over the first, and for so many cold starts more: of a dozen, the one that was
cheapest was so by luck, too."""
YOUNG_MINUTES, AGAIN_MINUTES = 60, 10
"""The choice is made anew in every minute with calls for so long, and then every so many minutes."""
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
        self._places = {name: place for place, name in enumerate(methods)}
        self._methods = dict(methods)
        fixed = [(place, each) for place, each in enumerate(methods.values()) if isinstance(each, FixedWarmth)]
        self._fixed = sorted(fixed, key=lambda each: -each[1].minutes)
        """The longest first. They are asked for their terms alone: when each level was needed last is known here."""
        self._others = [
            (place, each) for place, each in enumerate(methods.values()) if not isinstance(each, FixedWarmth)
        ]
        self._learners = [each for _, each in self._others]
        self.recent: deque[int] = deque(maxlen=window)
        """What was needed in the minutes for which containers stay."""
        known = [(costs or {}).get(name, ShadowCost()) for name in methods]
        self._idle, self._cold = [cost.idle_minutes for cost in known], [cost.cold for cost in known]
        self._unit = 1.0
        """What a cost of now weighs in them: it grows, in place of all others' decay."""
        self._minute = 0
        """That is going on."""
        self._ago: list[int] = [NEVER] * MOST_KEPT
        """For each level of concurrency, the minute in which it was needed last, negative: so they rise."""

    @property
    def costs(self) -> dict[str, ShadowCost]:
        """What each method would have cost, as of now."""
        return {name: ShadowCost(*pair) for name, pair in self.spent.items()}

    @property
    def spent(self) -> dict[str, tuple[float, float]]:
        """The same as plain pairs, which a choice takes each minute."""
        unit = self._unit
        spent = zip(self._places, self._idle, self._cold, strict=True)
        return {name: (idle / unit, cold / unit) for name, idle, cold in spent}

    @property
    def ages(self) -> list[int | None]:
        """Minutes between the last one that each level of concurrency was needed in and this one; None: never."""
        return [None if ago == NEVER else self._minute - 1 + ago for ago in self._ago]

    def observe(self, needed: int) -> list[int]:
        """A minute ended; what each method had there, in their order."""
        kept, levels = max(self.recent, default=0), self._levels()
        self._unit /= DECAY
        if self._unit > MOST_UNIT:
            self._rescale()
        self._charge(levels, needed, kept)
        for method in self._learners:
            method.observe(needed)
        most = min(needed, MOST_KEPT)
        if most:
            self._ago[:most] = [-self._minute] * most
        self._minute += 1
        self.recent.append(needed)
        return levels

    def _charge(self, levels: list[int], needed: int, kept: int) -> None:
        """Charge each method for a minute at the beginning of which so many containers of it were there."""
        idle, cold, unit, had = self._idle, self._cold, self._unit, max(kept, needed)
        if needed > kept:
            for place, level in enumerate(levels):
                used = min(level, needed)
                if used > kept:
                    idle[place] += unit * (used - kept) / 2
                    cold[place] += unit * (needed - used)
                else:
                    cold[place] += unit * (needed - kept)
        if max(levels) > had:
            for place, level in enumerate(levels):
                if level > had:
                    idle[place] += unit * (level - had)

    def _levels(self) -> list[int]:
        """Of all methods, in this minute."""
        levels = [0] * len(self._places)
        for place, fixed in self._fixed:
            if not (level := self._level_of(fixed)):
                break
            levels[place] = level
        for place, method in self._others:
            levels[place] = method.level()
        return levels

    def _level_of(self, fixed: FixedWarmth) -> int:
        level = bisect_left(self._ago, fixed.minutes - self._minute + 1)
        return level if level < fixed.most else fixed.most

    def _rescale(self) -> None:
        self._idle = [idle / self._unit for idle in self._idle]
        self._cold = [cold / self._unit for cold in self._cold]
        self._unit = 1.0

    def end_idle_minute(self) -> None:
        """A minute ended in which nothing was needed, and no method had a container; none of them need be told."""
        self._unit /= DECAY
        if self._unit > MOST_UNIT:
            self._rescale()
        self._minute += 1
        self.recent.append(0)

    def skip(self, minutes: int) -> None:
        """So many minutes have passed of which nobody knows what they needed."""
        self._minute += minutes
        self._resume_others()

    def resume(self, ages: Sequence[int | None]) -> None:
        """So many minutes ago each level of concurrency was needed last, up to `MOST_KEPT` levels; None: never."""
        ago = [NEVER if age is None else age - self._minute + 1 for age in ages[:MOST_KEPT]]
        self._ago = ago + [NEVER] * (MOST_KEPT - len(ago))
        self._resume_others()

    def _resume_others(self) -> None:
        for _, method in self._others:
            if isinstance(method, PlannedWarmth):
                method.resume(self.ages)

    def set_window(self, minutes: int) -> None:
        """From now on containers stay so long anyway."""
        self.recent = deque(self.recent, maxlen=minutes)

    def level(self, method: str) -> int:
        """Containers that should be there in the next minute, by a method."""
        asked = self._methods[method]
        return self._level_of(asked) if isinstance(asked, FixedWarmth) else asked.level()


class MethodChoice:
    """Which method decides, by costs and by what those of a function are of which nothing is known."""

    def __init__(self, priors: Mapping[str, ShadowCost], chosen: str = "", likely: str = LIKELY) -> None:
        """`priors`: of the methods to choose from; `likely`: the name of the one that is better if nothing speaks for
        another.
        """
        self._priors = dict(priors)
        self._likely = likely
        self._again_at = 0
        self.chosen = chosen

    def is_due(self, age_minutes: int) -> bool:
        """Whether it is to be made anew in a minute with calls."""
        return age_minutes >= self._again_at

    def choose(self, costs: Mapping[str, tuple[float, float]], worth: float, age_minutes: int) -> None:
        """Choose the one that would have cost least; the one chosen before, if none is better by a twentieth.

        Args:
            worth: of a cold start, in idle minutes.
            age_minutes: for so long the function is known.
        """
        self._again_at = age_minutes + (AGAIN_MINUTES if age_minutes > YOUNG_MINUTES else 0)
        weight, totals = DECAY**age_minutes, {}
        for name, (prior_idle, prior_cold) in self._priors.items():
            idle, cold = costs[name]
            total = idle + worth * cold + weight * (prior_idle + worth * prior_cold)
            totals[name] = total if name == self._likely else total / WORSE + worth * STARTS_WORSE
        if self.chosen not in totals or min(totals.values()) < BETTER * totals[self.chosen]:
            self.chosen = min(totals, key=lambda name: (totals[name], name != NOTHING, name))

    def change_prior(self, method: str, prior: ShadowCost) -> None:
        """From now on a method would cost an unknown function something else."""
        self._priors[method] = prior
