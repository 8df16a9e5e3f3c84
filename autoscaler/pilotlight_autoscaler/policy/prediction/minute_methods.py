"""The ways to say, at the end of a minute, how many containers a function should have in the next one. Pure.

    FixedWarmth    a time to live; of no minutes: none beyond what a window keeps
    BusyForecast   for what is called in most minutes: a forecast and a quantile of its errors
    PlannedWarmth  the ages at which a `KeepAlivePolicy` has a container there
    LikelyWarmth   where a call is likely enough, by `CallChances`

A level is needed in a minute if more containers were. Its age is the number of minutes since it was; a container that
should be there at any instant of the next minute should be there all of it: nobody knows when in a minute a call comes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from pilotlight_autoscaler.policy.prediction.call_chances import MOST_KEPT, CallChances, least_odds
from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.keep_alive import KeepAlivePlan, KeepAlivePolicy

DENSE_PART: Final = 0.5
DENSE_MINUTES: Final = 30
"""`BusyForecast` is for what was needed in at least this part of the last minutes."""


@mypyc_attr(allow_interpreted_subclasses=True)
class MinuteMethod(ABC):
    """One way. What was needed in a minute is a whole number of containers."""

    @abstractmethod
    def observe(self, needed: int) -> None:
        """A minute ended."""

    @abstractmethod
    def level(self) -> int:
        """Containers that should be there in the next minute."""


class FixedWarmth(MinuteMethod):
    """As many as were needed within so many minutes, up to a bound: a time to live; 0: none."""

    def __init__(self, minutes: int, most: int = MOST_KEPT) -> None:
        """`most`: containers that it keeps."""
        self.minutes = minutes
        self.most = most
        self._now = 0
        self._falling: deque[tuple[int, int]] = deque()
        """Minutes and what they needed, each more than the ones after it."""

    def observe(self, needed: int) -> None:
        self._now += 1
        while self._falling and self._falling[-1][1] <= needed:
            self._falling.pop()
        if needed and self.minutes:
            self._falling.append((self._now, needed))
        while self._falling and self._falling[0][0] <= self._now - self.minutes:
            self._falling.popleft()

    def resume(self, ages: Sequence[int | None]) -> None:
        """So many minutes ago each level of concurrency was needed last, up to `MOST_KEPT` levels."""
        self._falling.clear()
        for needed, age in reversed([*enumerate(ages, start=1)]):
            newest = self._falling[-1][0] if self._falling else self._now - self.minutes
            if age is not None and self._now - age > newest:
                self._falling.append((self._now - age, needed))

    def level(self) -> int:
        return min(self.most, self._falling[0][1]) if self._falling else 0


class BusyMinutes:
    """What several `BusyForecast` share: the forecast, and in how many of the last minutes something was needed."""

    def __init__(self, forecast: HoltForecast) -> None:
        self.forecast = forecast
        self._recent: deque[bool] = deque([False] * DENSE_MINUTES, maxlen=DENSE_MINUTES)
        self._count = 0

    @property
    def are_dense(self) -> bool:
        return self._count >= DENSE_PART * DENSE_MINUTES

    def observe(self, needed: int) -> None:
        """A minute ended."""
        self.forecast.observe(needed)
        self._count += (needed > 0) - self._recent[0]
        self._recent.append(needed > 0)


class BusyForecast(MinuteMethod):
    """By `HoltForecast`."""

    def __init__(self, minutes: BusyMinutes, quantile: float, *, learns: bool = True) -> None:
        """`learns`: whether it is the one, of those that share its minutes, that tells them what was needed."""
        self._minutes = minutes
        self._quantile = quantile
        self._learns = learns

    def observe(self, needed: int) -> None:
        if self._learns:
            self._minutes.observe(needed)

    def level(self) -> int:
        if not self._minutes.are_dense:
            return 0
        return math.ceil(self._minutes.forecast.bound(self._quantile) - 1e-6)


class PlannedWarmth(MinuteMethod):
    """By the ages at which a container should be there; each level of concurrency alone."""

    def __init__(self, policies: Sequence[KeepAlivePolicy]) -> None:
        """`policies`: one for each level."""
        self._policies = policies
        self._plans: list[KeepAlivePlan | None] = [None] * len(policies)
        self.ages: list[int | None] = [None] * len(policies)
        """Minutes since each level was needed; None: it never was."""

    def observe(self, needed: int) -> None:
        for level, age in enumerate(self.ages):
            if needed > level:
                if age is not None:
                    self._policies[level].ended(age + 1)
                    self._plans[level] = None
                self.ages[level] = 0
            elif age is not None:
                self.ages[level] = age + 1

    def level(self) -> int:
        count = 0
        for level, age in enumerate(self.ages):
            if age is None or not self._plan(level).covers_any(age, age + 1):
                break
            count += 1
        return count

    def resume(self, ages: Sequence[int | None]) -> None:
        """So many minutes ago each level of concurrency was needed last."""
        self.ages = list(ages[: len(self._policies)])

    def _plan(self, level: int) -> KeepAlivePlan:
        plan = self._plans[level]
        if plan is None:
            plan = self._plans[level] = self._policies[level].plan()
        return plan


@mypyc_attr(allow_interpreted_subclasses=True)
class LikelyWarmth(MinuteMethod):
    """As many as are likely enough to be used, by what a cold start is worth."""

    def __init__(self, chances: CallChances, worth: float) -> None:
        """`worth`: of a cold start, in idle minutes."""
        self._chances = chances
        self._least = least_odds(worth)

    def set_worth(self, worth: float) -> None:
        """From now on a cold start is worth something else."""
        self._least = least_odds(worth)

    def observe(self, needed: int) -> None:
        self._chances.observe(needed)

    def level(self) -> int:
        return self._chances.warm(self._least)
