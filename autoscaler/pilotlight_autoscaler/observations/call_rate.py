"""How many calls a second arrive for a version, as homes count them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pilotlight_core.model.ewma import ewma

SHORTEST_COUNT_S, LONGEST_COUNT_S = 0.25, 1.0
"""Bounds of the time behind a count: homes send one each 250 ms, but none while they have nothing to count."""
RATE_SMOOTHING_S = 2.0
"""A rate follows a step by 63 % in this time."""


@dataclass(kw_only=True)
class CallRate:
    """Calls per second, as of an instant. Changed in place: there are thousands of counts a second."""

    value: float = 0.0
    at: float = -math.inf

    def count(self, arrivals: int, at: float) -> None:
        """So many more calls have come until `at`."""
        elapsed = min(LONGEST_COUNT_S, max(SHORTEST_COUNT_S, at - self.at))
        part = 1 - math.exp(-elapsed / RATE_SMOOTHING_S)
        value = self.value if at - self.at <= 2 * LONGEST_COUNT_S else 0.0
        self.value, self.at = ewma(value, arrivals / elapsed, part), at
