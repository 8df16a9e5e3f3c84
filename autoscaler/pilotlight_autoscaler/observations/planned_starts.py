"""What jobs will ask for soon, as their homes tell it each second. Pure: instants are seconds of the world's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.function_view import PlannedCalls
from pilotlight_core.model.messages.job_messages import PlannedStarts as Told

STALE_S = 3.0
"""What was not told again for so long does not count: its home is gone, or the jobs are."""
MOST_FUNCTIONS = 10_000


@dataclass(frozen=True)
class _Planned:
    due_at: float
    jobs: int
    heard_at: float


@dataclass(kw_only=True)
class PlannedJobStarts:
    _of: dict[str, _Planned] = field(default_factory=dict)
    """By `tenant:app.function`."""

    def __len__(self) -> int:
        return len(self._of)

    def on_told(self, told: Told, at: float) -> None:
        """A home has told this at the instant `at`; of more functions than are remembered, the rest is not."""
        for item in told.items:
            if item.function in self._of or len(self._of) < MOST_FUNCTIONS:
                self._of[item.function] = _Planned(at + item.due_in_ms / 1_000.0, item.jobs, at)

    def of(self, function: str, at: float) -> PlannedCalls | None:
        """What a function's jobs will ask for, as of the instant `at`; None: nothing is known."""
        found = self._of.get(function)
        if found is None or at - found.heard_at > STALE_S:
            return None
        return PlannedCalls(due_in_s=found.due_at - at, calls=found.jobs)

    def soon(self, load_s: Callable[[str], float], at: float) -> Iterator[str]:
        """The functions whose containers should start now; `load_s` says how long a start takes, in seconds."""
        for function in self._of:
            calls = self.of(function, at)
            if calls is not None and calls.is_soon(load_s(function)):
                yield function

    def forget(self, at: float) -> None:
        """Forget what was not told again."""
        gone = [function for function, found in self._of.items() if at - found.heard_at > STALE_S]
        for function in gone:
            del self._of[function]
