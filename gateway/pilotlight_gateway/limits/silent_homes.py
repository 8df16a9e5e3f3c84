"""Homes that do not answer, and when there will be one again. Pure; instants are monotonic seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pilotlight_core.model.ewma import ewma

PATIENCE_S = 0.25
"""How long a call waits to be counted."""
LEASE_S = 3.0
"""How long a gateway's lease lasts without a renewal."""
TAKEOVER_S = 0.3
"""What it takes to see that a lease is gone, to be sure of it, and to write a new home."""
SMOOTHING = 0.5
"""Of the last restart in what the next one is taken to need."""
SOON_S = 0.25
NEVER = float("inf")


def home_expected_at(renewed_at: float | None, silent_since: float, restart: float = NEVER) -> float:
    """When there will be a home again: its lease was `renewed` last (None: not known).

    If its process is gone it may be back sooner, since it need not wait for its own lease: `restart` seconds after it
    fell silent, as far as earlier ones tell. Nobody can know how fast the first one will be.
    """
    takeover = (silent_since if renewed_at is None else renewed_at) + LEASE_S + TAKEOVER_S
    return min(takeover, silent_since + restart)


class HomeAvailability:
    """What one gateway knows of homes that do not answer it. `renewed`: when a gateway's lease was renewed last."""

    def __init__(self, renewed_at: Callable[[str], float | None]) -> None:
        self._renewed_at = renewed_at
        self._silent: dict[int, tuple[float, float]] = {}
        """shard -> since when its home does not answer, and when there will be one again"""
        self._again: dict[int, float] = {}
        """shard -> when its home answered again, after it had not"""
        self._dead: set[str] = set()
        """Gateways that nobody answers for, although their lease still stands."""
        self._deaths: dict[int, float] = {}
        """Shard -> when its home, which is dead, fell silent."""
        self._restart = NEVER
        """Seconds that the dead took to be back under their name, smoothed; NEVER: others were faster."""

    def answered(self, shard: int, at: float) -> None:
        """There is a home."""
        if shard in self._silent:
            since, _ = self._silent.pop(shard)
            self._again[shard] = at
            if self._deaths.pop(shard, None) is not None:
                self._restart = ewma(self._restart if self._restart != NEVER else None, at - since, SMOOTHING)

    def process_lost(self, gateway: str) -> None:
        """Its process is gone."""
        self._dead.add(gateway)

    def keep(self, alive: Collection[str]) -> None:
        """These gateways have a lease; what is known of others is of no use any more."""
        self._dead.intersection_update(alive)

    def wait(self, shard: int, home: str, at: float) -> float:
        """Seconds after which to come again, told to a call that got no answer; `home` is "" while there is none."""
        if self._again.get(shard, -NEVER) > at - PATIENCE_S:
            return SOON_S  # it came back while this call was waiting
        since, until = self._silent.get(shard) or (at - PATIENCE_S, NEVER)
        if home or until == NEVER:
            dead = home in self._dead
            until = min(until, home_expected_at(self._renewed_at(home), since, self._restart if dead else NEVER))
            if dead:
                self._deaths[shard] = since
        self._silent[shard] = since, until
        return max(SOON_S, until - at)
