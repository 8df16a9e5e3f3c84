"""How fast a version's idle containers may go. Pure: time is an argument (seconds).

Calls that came together end together, so their containers become idle together: if all went at once, the next burst
would find none. So at most 15 % go in a minute, or in the version's own `scaledown_window` if that is shorter, and one
in any case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

STEP_PART = 0.15
STEP_EVERY_S = 60.0


@dataclass(kw_only=True)
class ScaleDownPace:
    _next: dict[str, float] = field(default_factory=dict)
    """Version -> no further container goes before this instant."""

    def room(self, version: str, size: int, at: float) -> int:
        """How many of a version's `size` containers may go now."""
        return 0 if at < self._next.get(version, at) else max(1, math.floor(size * STEP_PART))

    def spend(self, version: str, window_s: float, at: float) -> None:
        """Some of a version go, whose idle containers stay for `window_s`."""
        self._next[version] = at + min(STEP_EVERY_S, window_s)

    def forget(self, at: float) -> None:
        """Drop what has passed."""
        self._next = {version: until for version, until in self._next.items() if until > at}
