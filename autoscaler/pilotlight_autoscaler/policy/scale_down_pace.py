"""How fast a version's idle containers may go. Pure: time is an argument (seconds).

Calls that came together end together, so their containers become idle together: if all went at once, the next burst
would find none. So of those that were there when a minute began at most 15 % go in it, and one in any case; the minute
is the version's own `scaledown_window` if that is shorter. It begins when the first of them goes.

What is beyond a ceiling that was lowered goes at once: somebody wants fewer. So does what nobody has the money for.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_autoscaler.policy.consolidation import without_needed
from pilotlight_autoscaler.policy.plain_wish import PlainVersion
from pilotlight_autoscaler.policy.scaling_policy import VersionView, beyond_ceiling, beyond_funds, due_ones, to_drain
from pilotlight_autoscaler.policy.wish import Wish
from pilotlight_core.model.messages.node_messages import ContainerReport

STEP_PART = 0.15
STEP_EVERY_S = 60.0


class _Step(NamedTuple):
    """What goes of a version in one minute."""

    ends_at: float
    left: int
    """Containers that may still go in it."""


@dataclass(frozen=True, kw_only=True)
class SurplusContainers:
    """The idle containers of a version that may go now."""

    at_once: Sequence[ContainerReport] = ()
    """They are beyond its ceiling, or there is no money for them."""
    in_step: Sequence[ContainerReport] = ()
    """They have not been used for long, and are as many as the pace allows."""

    def __len__(self) -> int:
        return len(self.at_once) + len(self.in_step)

    def __iter__(self) -> Iterator[ContainerReport]:
        yield from self.at_once
        yield from self.in_step


NO_SURPLUS = SurplusContainers()


@dataclass(kw_only=True)
class ScaleDownPace:
    _steps: dict[str, _Step] = field(default_factory=dict)
    """By version."""

    def surplus(
        self, version: str, view: VersionView, wish: Wish, at: float, but: Container[str] = ()
    ) -> SurplusContainers:
        """The idle containers of a version that may go now, without those in `but`.

        Those of a deployed version go by and by, and none while its function's wish holds; those of another at once.
        """
        wanted = wish.by_version[version]
        if view.size <= wanted:
            return NO_SURPLUS
        beyond = beyond_funds(view, wanted) or beyond_ceiling(view)
        if wish.holds and view.is_kept:
            due = []
        else:
            known = {each.id for each in beyond}
            due = [each for each in to_drain(view, wanted) if each.id not in known and each.id not in but]
        if due and view.is_kept:
            due = without_needed(view, due)[: self.room(version, view.size - len(beyond), at)]
        return SurplusContainers(at_once=[each for each in beyond if each.id not in but], in_step=due)

    def leaving(
        self, version: str, view: VersionView, wish: Wish, at: float, but: Container[str] = ()
    ) -> SurplusContainers:
        """The same, which go now, and are counted."""
        found = self.surplus(version, view, wish, at, but)
        if found.in_step and view.is_kept:
            self.spend(version, view.size - len(found.at_once), len(found.in_step), view.window_s, at)
        return found

    def plain_leaving(
        self, name: str, seen: PlainVersion, containers: Iterable[ContainerReport], wanted: int, at: float
    ) -> list[ContainerReport]:
        """The same of a plain function, of which `wanted` containers are wanted and `containers` do not start."""
        due = due_ones(containers, seen.size, wanted, seen.window_s, seen.zero_window_s)[
            : self.room(name, seen.size, at)
        ]
        going = 0
        while going < len(due) and seen.carries(seen.size - going - 1):
            going += 1
        if going:
            self.spend(name, seen.size, going, seen.window_s, at)
        return due[:going]

    def next_at(self, version: str, at: float) -> float:
        """When a further container of a version may go."""
        step = self._steps.get(version)
        return step.ends_at if step is not None and step.left <= 0 and at < step.ends_at else at

    def room(self, version: str, size: int, at: float) -> int:
        """How many of a version's `size` containers may go now."""
        step = self._steps.get(version)
        return max(0, step.left) if step is not None and at < step.ends_at else max(1, math.floor(size * STEP_PART))

    def spend(self, version: str, size: int, count: int, window_s: float, at: float) -> None:
        """So many of a version's `size` containers go, whose idle ones stay for `window_s`."""
        step, left = self._steps.get(version), self.room(version, size, at) - count
        ends_at = step.ends_at if step is not None and at < step.ends_at else at + min(STEP_EVERY_S, window_s)
        self._steps[version] = _Step(ends_at=ends_at, left=left)

    def forget(self, at: float) -> None:
        """Drop what has passed."""
        self._steps = {version: step for version, step in self._steps.items() if step.ends_at > at}
