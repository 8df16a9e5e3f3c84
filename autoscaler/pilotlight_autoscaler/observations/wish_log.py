"""What functions were to have, and since when: the last changes of each. Pure."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.wish import Wish

MOST_CHANGES = 50
"""Of one function."""
MOST_FUNCTIONS = 2_000
"""The one that changed least recently is forgotten for a further one."""


@dataclass(frozen=True, kw_only=True)
class WishChange:
    """From `at` (unix seconds) on, until the next one."""

    at: float
    wish: Wish
    there: int
    """Containers that there were, those on their way counted."""
    more_needs: str
    """What it would have taken to have one more."""


@dataclass(kw_only=True)
class WishLog:
    on_change: Callable[[str, WishChange], None] = lambda _, __: None
    """Called with each change that is kept, and its function."""
    _changes: OrderedDict[str, deque[WishChange]] = field(default_factory=OrderedDict)
    """By `tenant:app.function`, the oldest change first."""

    def add(self, function: str, change: WishChange) -> None:
        """Keep a wish, if it is another than the last one of its function."""
        changes = self._changes.get(function)
        if changes is None:
            if not change.wish.count and not change.there:
                return  # nothing was to be had, and nothing is
            changes = self._changes[function] = deque(maxlen=MOST_CHANGES)
            if len(self._changes) > MOST_FUNCTIONS:
                self._changes.popitem(last=False)
        elif _says_the_same(changes[-1], change):
            return
        changes.append(change)
        self._changes.move_to_end(function)
        self.on_change(function, change)

    def of_function(self, function: str, at: float | None = None) -> Sequence[WishChange]:
        """Its changes up to the instant `at`, the oldest first."""
        changes = self._changes.get(function, ())
        return [change for change in changes if at is None or change.at <= at]


def _says_the_same(last: WishChange, change: WishChange) -> bool:
    return (last.wish.count, last.wish.rule, last.there) == (change.wish.count, change.wish.rule, change.there)
