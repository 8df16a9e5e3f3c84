"""How long calls of a container's methods took lately, and how long one that runs has still to go. Pure."""

from __future__ import annotations

import math
from collections import deque

SAMPLES = 64
"""Of a method."""
SURE_PART = 0.9
"""Of the calls that took longer than one has, so many are done by the time that is foretold."""


class RunTimes:
    """By method; what a batch took counts once."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[float]] = {}

    def observe(self, method: str, seconds: float) -> None:
        """A call has ended well after so many seconds in the guest."""
        recent = self._recent.get(method)
        if recent is None:
            recent = self._recent[method] = deque(maxlen=SAMPLES)
        recent.append(seconds)

    def remaining_s(self, method: str, elapsed_s: float, timeout_s: float) -> float:
        """How long a call that has run for `elapsed_s` is expected to go on.

        By the calls that took longer. Where there were none, nothing is known but that it has run so long: it is
        expected to go on for as long again, so that at most half of a run is in vain that does not fit after all.
        """
        longer = sorted(each for each in self._recent.get(method, ()) if each > elapsed_s)
        if longer:
            return longer[math.ceil(SURE_PART * len(longer)) - 1] - elapsed_s
        return max(0.0, min(elapsed_s, timeout_s - elapsed_s))
