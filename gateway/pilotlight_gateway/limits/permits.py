"""How many calls run at once: an exact count of who they are, so that nothing is ever given back twice or never."""

from __future__ import annotations

from pilotlight_core.model.ewma import ewma

SMOOTHING = 0.1
"""Of one call's time in the mean that the wait for a permit is estimated by."""
UNKNOWN_S = 1.0
"""How long a call holds its permit, while none has ended yet."""

PermitKey = tuple[str, int]
"""A permit: the process that the call is at, and its number there."""


class Permits:
    """The calls of one scope that run."""

    __slots__ = ("_held", "_mean")

    def __init__(self) -> None:
        self._held: dict[PermitKey, float] = {}
        """permit -> seconds at which it was given, in that order."""
        self._mean = 0.0
        """Seconds that a call held one; 0: not known yet."""

    def __len__(self) -> int:
        return len(self._held)

    def keys(self) -> set[PermitKey]:
        """Who they are."""
        return set(self._held)

    def enter(self, key: PermitKey, at: float) -> None:
        """The call runs."""
        self._held[key] = at

    def leave(self, key: PermitKey, at: float) -> None:
        """It has ended. If it was not known, nothing happens."""
        since = self._held.pop(key, None)
        if since is not None:
            self._mean = ewma(self._mean or None, at - since, SMOOTHING)

    def drop(self, key: PermitKey) -> None:
        """It is gone, and says nothing about how long calls run."""
        self._held.pop(key, None)

    def wait(self, at: float) -> float:
        """Seconds until one is free, by how long calls ran so far: the oldest ends first, or is overdue."""
        mean = self._mean or UNKNOWN_S
        oldest = next(iter(self._held.values()), at)
        return max(oldest + mean - at, mean / (len(self._held) + 1))
