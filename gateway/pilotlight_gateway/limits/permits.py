"""How many calls run at once, counted by identity, so that no permit is returned twice or never."""

from __future__ import annotations

from pilotlight_core.model.ewma import ewma

SMOOTHING = 0.1
"""Weight of the newest call in the mean time that the wait is estimated by."""
UNKNOWN_S = 1.0
"""Taken for that mean while no call has ended."""

PermitKey = tuple[str, int]
"""A call: its gateway, and its number there."""


class Permits:
    __slots__ = ("_held", "_mean")

    def __init__(self) -> None:
        self._held: dict[PermitKey, float] = {}
        """Permit -> seconds at which it was given, in that order."""
        self._mean = 0.0
        """Seconds; 0: unknown."""

    def __len__(self) -> int:
        return len(self._held)

    def keys(self) -> set[PermitKey]:
        return set(self._held)

    def enter(self, key: PermitKey, at: float) -> None:
        self._held[key] = at

    def leave(self, key: PermitKey, at: float) -> None:
        """The call has ended; unknown calls are ignored."""
        since = self._held.pop(key, None)
        if since is not None:
            self._mean = ewma(self._mean or None, at - since, SMOOTHING)

    def drop(self, key: PermitKey) -> None:
        """The call is gone, without an end to learn from."""
        self._held.pop(key, None)

    def wait(self, at: float) -> float:
        """Seconds until a permit is expected to be free: the oldest call ends first, or is overdue."""
        mean = self._mean or UNKNOWN_S
        oldest = next(iter(self._held.values()), at)
        return max(oldest + mean - at, mean / (len(self._held) + 1))
