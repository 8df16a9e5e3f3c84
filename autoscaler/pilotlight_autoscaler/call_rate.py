"""The rate of calls of each version, from the homes' counts. Pure: time is an argument (seconds)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pilotlight_core.model.ewma import ewma

SHORTEST_S, LONGEST_S = 0.25, 1.0
"""Bounds of the time behind a count: homes send one each 250 ms, but none while they have nothing to count."""
SMOOTHED_S = 2.0
"""A rate follows a step by 63 % in this time."""


@dataclass(frozen=True, kw_only=True)
class CallRate:
    """Calls per second, as of an instant."""

    value: float = 0.0
    at: float = -math.inf

    def after(self, arrivals: int, at: float) -> CallRate:
        """The rate after so many more calls until `at`."""
        elapsed = min(LONGEST_S, max(SHORTEST_S, at - self.at))
        part = 1 - math.exp(-elapsed / SMOOTHED_S)
        value = self.value if at - self.at <= 2 * LONGEST_S else 0.0
        return CallRate(value=ewma(value, arrivals / elapsed, part), at=at)
