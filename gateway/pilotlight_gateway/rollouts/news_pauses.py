"""When news that could not be told are told again: later each time. It is said once for as long as it lasts."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

FIRST_S, MOST_S = 0.5, 30.0
"""After the first failure, and at most: each further one doubles it."""


class _Pause(NamedTuple):
    seconds: float
    ends_at: float


class NewsPauses:
    """By owner and name of an app; the instants are monotonic seconds."""

    def __init__(self) -> None:
        self._pauses: dict[tuple[str, str], _Pause] = {}

    def __len__(self) -> int:
        return len(self._pauses)

    def keep_only(self, apps: Collection[tuple[str, str]]) -> None:
        """Forget all but these: the others have nothing to be told any more."""
        self._pauses = {app: pause for app, pause in self._pauses.items() if app in apps}

    def may_try(self, app: tuple[str, str], at: float) -> bool:
        """Whether the news of an app are to be told now."""
        pause = self._pauses.get(app)
        return pause is None or at >= pause.ends_at

    def note_failed(self, app: tuple[str, str], at: float) -> bool:
        """They could not be told. Returns whether that is new."""
        before = self._pauses.get(app)
        seconds = FIRST_S if before is None else min(2.0 * before.seconds, MOST_S)
        self._pauses[app] = _Pause(seconds, at + seconds)
        return before is None

    def note_told(self, app: tuple[str, str]) -> bool:
        """They were told. Returns whether they could not be before."""
        return self._pauses.pop(app, None) is not None
