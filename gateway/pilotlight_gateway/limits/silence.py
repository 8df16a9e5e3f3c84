"""Homes that do not answer, and when there will be one again. Pure; instants are monotonic seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection

PATIENCE_S = 0.25
"""How long a call waits to be counted."""
LEASE_S = 3.0
"""How long a gateway's lease lasts without a renewal."""
TAKEOVER_S = 0.3
"""What it takes to see that a lease is gone, to be sure of it, and to write a new home."""
RESTART_S = 2.5
"""From the death of a process to its next life: a supervisor starts it anew under its name, and it need not wait."""
SOON_S = 0.25
NEVER = float("inf")


def home_again(renewed: float | None, silent_since: float, *, dead: bool) -> float:
    """When there will be a home again: its lease was `renewed` last (None: not known), and it is `dead` or silent."""
    takeover = (silent_since if renewed is None else renewed) + LEASE_S + TAKEOVER_S
    return min(takeover, silent_since + RESTART_S) if dead else takeover


class Silence:
    """What one gateway knows of homes that do not answer it. `renewed`: when a gateway's lease was renewed last."""

    def __init__(self, renewed: Callable[[str], float | None]) -> None:
        self._renewed = renewed
        self._silent: dict[int, tuple[float, float]] = {}
        """shard -> since when its home does not answer, and when there will be one again"""
        self._again: dict[int, float] = {}
        """shard -> when its home answered again, after it had not"""
        self._dead: set[str] = set()
        """Gateways that nobody answers for, although their lease still stands."""

    def answered(self, shard: int, at: float) -> None:
        """There is a home."""
        if shard in self._silent:
            del self._silent[shard]
            self._again[shard] = at

    def nobody_listens(self, gateway: str) -> None:
        """Its process is gone."""
        self._dead.add(gateway)

    def only(self, alive: Collection[str]) -> None:
        """These gateways have a lease; what is known of others is of no use any more."""
        self._dead.intersection_update(alive)

    def wait(self, shard: int, home: str, at: float) -> float:
        """Seconds after which to come again, told to a call that got no answer; `home` is "" while there is none."""
        if self._again.get(shard, -NEVER) > at - PATIENCE_S:
            return SOON_S  # it came back while this call was waiting
        since, until = self._silent.get(shard) or (at - PATIENCE_S, NEVER)
        if home or until == NEVER:
            until = min(until, home_again(self._renewed(home), since, dead=home in self._dead))
        self._silent[shard] = since, until
        return max(SOON_S, until - at)
