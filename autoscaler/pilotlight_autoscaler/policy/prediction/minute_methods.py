"""The ways to say, at the end of a minute, how many containers a function should have in the next one. Pure.

    FixedWarmth   none beyond what a window keeps, or one for so many minutes after a call
    BusyForecast  for what is called in most minutes: a forecast and a quantile of its errors
    LearntWarmth  for what is called now and then: the ages at which a container pays (`idle_times`), for each level of
                  concurrency alone
    UsualWarmth   for what is called at regular intervals: the range of most idle times (the hybrid histogram of Shahrad
                  et al., Serverless in the Wild, USENIX ATC 2020, section 4.2, without its ARIMA model)

A level is needed in a minute if more containers were. Its age is the number of minutes since it was; a container that
should be there at any instant of the next minute should be there all of it: nobody knows when in a minute a call comes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.idle_times import IdleTimes
from pilotlight_autoscaler.policy.prediction.keep_alive import LearntKeepAlive

LEVELS = 4
"""Of concurrency that have idle times of their own: a fifth container is kept by the function's window alone."""
RANGE_MINUTES = 240
"""The longest idle time that `UsualWarmth` knows."""
LEAST_SEEN = 3
"""Idle times, before `UsualWarmth` says anything."""
DENSE_PART, DENSE_MINUTES = 0.5, 30
"""`BusyForecast` is for what was needed in at least this part of the last minutes."""


class MinuteMethod(Protocol):
    """One way. What was needed in a minute is a whole number of containers."""

    def observe(self, needed: int) -> None:
        """A minute ended."""
        ...

    def level(self) -> int:
        """Containers that should be there in the next minute."""
        ...


class FixedWarmth:
    """One container, for so many minutes after each one that needed any; 0: never."""

    def __init__(self, minutes: int) -> None:
        self._minutes = minutes
        self._age = minutes

    def observe(self, needed: int) -> None:
        self._age = 0 if needed else self._age + 1

    def level(self) -> int:
        return int(self._age < self._minutes)


class BusyForecast:
    """By `HoltForecast`."""

    def __init__(self, quantile: float, lead: int = 1, forecast: HoltForecast | None = None) -> None:
        """`lead`: minutes that a start takes, rounded up."""
        self.forecast = forecast or HoltForecast(quantile, lead)
        self._recent: deque[bool] = deque(maxlen=DENSE_MINUTES)

    def observe(self, needed: int) -> None:
        self.forecast.observe(needed)
        self._recent.append(needed > 0)

    def level(self) -> int:
        if sum(self._recent) < DENSE_PART * DENSE_MINUTES:
            return 0
        return math.ceil(self.forecast.bound() - 1e-6)


class LearntWarmth:
    """By what `IdleTimes` knows of each of the first `LEVELS` levels."""

    def __init__(self, worth: float, times: tuple[IdleTimes, ...] = ()) -> None:
        """`worth`: idle minutes that a cold start is worth."""
        known = (*times, *(IdleTimes() for _ in range(LEVELS - len(times))))
        self.levels = tuple(LearntKeepAlive((worth,), each) for each in known)
        self.ages: list[int | None] = [None] * LEVELS
        """Minutes since each was needed; None: it never was."""

    def set_worth(self, worth: float) -> None:
        """From now on a cold start is worth something else."""
        for level in self.levels:
            level.set_worths((worth,))

    def observe(self, needed: int) -> None:
        for number, times in enumerate(self.levels):
            age = self.ages[number]
            if needed > number:
                if age is not None:
                    times.ended(age + 1)
                self.ages[number] = 0
            elif age is not None:
                self.ages[number] = age + 1

    def level(self) -> int:
        count = 0
        for times, age in zip(self.levels, self.ages, strict=True):
            if age is None or not times.plan().covers_any(age, age + 1):
                break
            count += 1
        return count


class UsualWarmth:
    """One container from the least usual idle time to the longest usual one, if idle times are alike."""

    def __init__(self, idle_minutes: Iterable[int] = ()) -> None:
        """`idle_minutes` are idle times that were seen before."""
        self._counts = [0] * RANGE_MINUTES
        self._seen = self._beyond = 0
        self._age: int | None = None
        self._window: tuple[float, float] | None = None
        for minutes in idle_minutes:
            self._ended(minutes)

    def observe(self, needed: int) -> None:
        if needed:
            if self._age is not None:
                self._ended(self._age + 1)
            self._age = 0
        elif self._age is not None:
            self._age += 1

    def level(self) -> int:
        if self._age is None or self._window is None:
            return 0
        start, end = self._window
        return int(self._age + 1 > start and self._age < end)

    def _ended(self, minutes: int) -> None:
        self._seen += 1
        if minutes < RANGE_MINUTES:
            self._counts[minutes] += 1
        else:
            self._beyond += 1
        inside = self._seen - self._beyond
        alike = inside >= LEAST_SEEN and 2 * self._beyond < self._seen
        self._window = (0.9 * self._quantile(0.05, inside), 1.1 * (self._quantile(0.99, inside) + 1)) if alike else None

    def _quantile(self, part: float, inside: int) -> int:
        total = 0
        for minute, count in enumerate(self._counts):
            total += count
            if total >= part * inside:
                return minute
        return RANGE_MINUTES - 1
