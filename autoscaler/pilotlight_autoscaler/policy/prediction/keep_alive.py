"""When a container of an idle function is there. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from pilotlight_autoscaler.policy.prediction.idle_times import WarmWindow


class KeepAlivePlan:
    """The ages in minutes at which a container is there. Windows are sorted and apart."""

    __slots__ = ("_before", "_ends", "_starts", "windows")

    def __init__(self, windows: Sequence[WarmWindow]) -> None:
        self.windows = tuple(windows)
        self._starts = [window.start for window in windows]
        self._ends = [window.end for window in windows]
        self._before = [0.0, *accumulate(window.end - window.start for window in windows)]
        """Minutes in all windows before each."""

    def covers(self, minutes: float) -> bool:
        """Whether a call finds a container that comes after so long."""
        place = bisect_right(self._starts, minutes) - 1
        return place >= 0 and minutes <= self._ends[place]

    def covers_any(self, start: float, end: float) -> bool:
        """Whether a container is there at any age from `start` to `end`."""
        place = bisect_right(self._starts, end) - 1
        return place >= 0 and start <= self._ends[place]

    def idle_minutes(self, minutes: float) -> float:
        """How long a container was there within the first `minutes`."""
        place = bisect_right(self._starts, minutes) - 1
        if place < 0:
            return 0.0
        return self._before[place] + min(minutes, self._ends[place]) - self._starts[place]


class KeepAlivePolicy(Protocol):
    """One function's policy at one level of concurrency."""

    def plan(self) -> KeepAlivePlan:
        """From the end of a call on."""
        ...

    def ended(self, minutes: float) -> None:
        """The function was idle for so long."""
        ...
