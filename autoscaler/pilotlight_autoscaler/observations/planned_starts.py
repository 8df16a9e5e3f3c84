"""What jobs will ask for soon, as their homes tell it each second. Pure: instants are seconds of the world's clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.function_view import PLANNED_MARGIN_S, PlannedCalls
from pilotlight_core.model.messages.job_messages import PlannedStarts as Told

STALE_S = 3.0
"""What was not told again for so long does not count: its home is gone, or the jobs are."""
MOST_FUNCTIONS = 10_000
LOOK_EVERY_S = 0.25
"""Interval of looking which of them are due."""


@dataclass(frozen=True)
class _Planned:
    due_at: float
    jobs: int
    version: str
    heard_at: float


@dataclass(kw_only=True)
class PlannedJobStarts:
    _of: dict[str, _Planned] = field(default_factory=dict)
    """By `tenant:app.function`."""
    _soon: list[str] = field(default_factory=list)
    _look_at: float = 0.0

    def __len__(self) -> int:
        return len(self._of)

    def on_told(self, told: Told, at: float) -> None:
        """A home has told this at the instant `at`; of more functions than are remembered, the rest is not."""
        for item in told.items:
            if item.function in self._of or len(self._of) < MOST_FUNCTIONS:
                self._of[item.function] = _Planned(at + item.due_in_ms / 1_000.0, item.jobs, item.version, at)

    def of(self, function: str, at: float) -> PlannedCalls | None:
        """What a function's jobs will ask for, as of the instant `at`; None: nothing is known."""
        found = self._of.get(function)
        if found is None or at - found.heard_at > STALE_S:
            return None
        return PlannedCalls(due_in_s=found.due_at - at, calls=found.jobs, version=found.version)

    def soon(self, load_s: Callable[[str], float], at: float) -> Sequence[str]:
        """The functions whose containers should start now; `load_s` says how long a start takes, in seconds."""
        if at >= self._look_at:
            self._look_at = at + LOOK_EVERY_S
            told = self._of.items()
            self._soon = [name for name, each in told if each.due_at - at <= load_s(name) + PLANNED_MARGIN_S]
        return self._soon

    def forget(self, at: float) -> None:
        """Forget what was not told again."""
        gone = [function for function, found in self._of.items() if at - found.heard_at > STALE_S]
        for function in gone:
            del self._of[function]
