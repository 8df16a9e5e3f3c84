"""How fast a version's idle containers may go. Pure: time is an argument (seconds).

Calls that came together end together, so their containers become idle together: if all went at once, the next burst
would find none. So at most 15 % go in a minute, or in the version's own `scaledown_window` if that is shorter, and one
in any case.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.scaling_policy import VersionView, to_drain
from pilotlight_autoscaler.policy.wish import Wish
from pilotlight_core.model.messages.node_messages import ContainerReport

STEP_PART = 0.15
STEP_EVERY_S = 60.0


@dataclass(kw_only=True)
class ScaleDownPace:
    _next: dict[str, float] = field(default_factory=dict)
    """Version -> no further container goes before this instant."""

    def leaving(
        self, version: str, view: VersionView, wish: Wish, at: float, but: Container[str] = ()
    ) -> list[ContainerReport]:
        """The idle containers of a version that go now, without those in `but`; they are its step.

        Those of a deployed version go by and by, and none while its function's wish holds; those of another at once.
        """
        if wish.holds and view.deployed:
            return []
        due = [each for each in to_drain(view, wish.by_version[version]) if each.id not in but]
        if due and view.deployed:
            due = due[: self.room(version, view.size, at)]
            if due:
                self.spend(version, view.window_s, at)
        return due

    def next_at(self, version: str, at: float) -> float:
        """When a further container of a version may go."""
        return max(at, self._next.get(version, at))

    def room(self, version: str, size: int, at: float) -> int:
        """How many of a version's `size` containers may go now."""
        return 0 if at < self._next.get(version, at) else max(1, math.floor(size * STEP_PART))

    def spend(self, version: str, window_s: float, at: float) -> None:
        """Some of a version go, whose idle containers stay for `window_s`."""
        self._next[version] = at + min(STEP_EVERY_S, window_s)

    def forget(self, at: float) -> None:
        """Drop what has passed."""
        self._next = {version: until for version, until in self._next.items() if until > at}
