"""Which of a tenant's functions may have how many containers for what their pasts foretell. Pure.

All of them together have a bound. Each minute it is dealt out one by one, to each function in turn, as far as it asks
for more: a function that asks for many takes from none that asks for a few. Who is first changes with each hour, so
what cannot be divided goes to another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEAL_S = 60.0
TURN_S = 3_600.0
"""How long the same function is first: a container that is started for a turn is of use for a while."""


@dataclass(kw_only=True)
class PrewarmGrants:
    """Of one tenant."""

    most: int
    """Containers of all its functions."""
    _asked: dict[str, int] = field(default_factory=dict)
    _granted: dict[str, int] = field(default_factory=dict)
    _left: int = 0
    """What nobody has been granted."""
    _dealt: int = -1
    """The minute of the last deal."""

    def __bool__(self) -> bool:
        return bool(self._asked)

    def ask(self, function: str, count: int, at: float) -> dict[str, int]:
        """A function asks for so many at the unix second `at`; what it may have, and others that may have changed."""
        if count:
            self._asked[function] = count
        else:
            self._asked.pop(function, None)
        if int(at // DEAL_S) != self._dealt:
            self._dealt = int(at // DEAL_S)
            before, self._granted = self._granted, granted(self._asked, self.most, at)
            self._left = self.most - sum(self._granted.values())
            return dict.fromkeys((*before, function), 0) | self._granted
        # Until the next deal it has what is left.
        self._left += self._granted.get(function, 0)
        self._granted[function] = min(count, self._left)
        self._left -= self._granted[function]
        return {function: self._granted[function]}

    def forget(self, function: str) -> None:
        """A function asks for none any more, and whoever asks next may have what it had."""
        self._asked.pop(function, None)
        self._left += self._granted.pop(function, 0)


def granted(asked: Mapping[str, int], most: int, at: float) -> dict[str, int]:
    """How many of what functions have `asked` for each of them gets, at the unix second `at`."""
    found = dict.fromkeys(asked, 0)
    names = sorted(asked)
    first = int(at // TURN_S) % len(names) if names else 0
    waiting = [*names[first:], *names[:first]]
    left = most
    while waiting and left > 0:
        for name in waiting[:left]:
            found[name] += 1
        left -= min(left, len(waiting))
        waiting = [name for name in waiting if found[name] < asked[name]]
    return found
