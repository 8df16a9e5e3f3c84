"""Homes that do not answer, and when there will be one again. Instants are monotonic seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pilotlight_core.model.ewma import ewma

PATIENCE_S = 0.25
"""How long a call waits to be counted."""
LEASE_S = 3.0
TAKEOVER_S = 0.3
"""The time to notice that a lease is gone, to confirm it, and to write a new home."""
SMOOTHING = 0.5
"""Weight of the last restart in the expected one."""
SOON_S = 0.25
NEVER = float("inf")


def home_expected_at(renewed_at: float | None, silent_since: float, restart: float = NEVER) -> float:
    """When there will be a home again, if its lease was last renewed at `renewed_at` (None: unknown).

    A gateway whose process is gone may return sooner, as it need not wait for its own lease: about `restart` seconds
    after it fell silent, judged by earlier restarts.
    """
    takeover = (silent_since if renewed_at is None else renewed_at) + LEASE_S + TAKEOVER_S
    return min(takeover, silent_since + restart)


class HomeAvailability:
    """What one gateway knows of silent homes; `renewed_at` returns the last renewal of a gateway's lease."""

    def __init__(self, renewed_at: Callable[[str], float | None]) -> None:
        self._renewed_at = renewed_at
        self._silent: dict[int, tuple[float, float]] = {}
        """Shard -> since when its home is silent, and when one is expected."""
        self._again: dict[int, float] = {}
        """Shard -> when its home answered again."""
        self._lost: set[str] = set()
        """Gateways whose process is gone, though their lease stands."""
        self._lost_since: dict[int, float] = {}
        """Shard -> when its home, whose process is gone, fell silent."""
        self._restart = NEVER
        """Smoothed seconds of restarts; NEVER: takeovers were faster."""

    def answered(self, shard: int, at: float) -> None:
        if shard in self._silent:
            since, _ = self._silent.pop(shard)
            self._again[shard] = at
            if self._lost_since.pop(shard, None) is not None:
                self._restart = ewma(self._restart if self._restart != NEVER else None, at - since, SMOOTHING)

    def process_lost(self, gateway: str) -> None:
        self._lost.add(gateway)

    def keep(self, alive: Collection[str]) -> None:
        """Forget the gateways without a lease."""
        self._lost.intersection_update(alive)

    def wait(self, shard: int, home: str, at: float) -> float:
        """Retry-After, in seconds, of a call without an answer; `home` is "" while there is none."""
        if self._again.get(shard, -NEVER) > at - PATIENCE_S:
            return SOON_S  # it answered again while this call waited
        since, until = self._silent.get(shard) or (at - PATIENCE_S, NEVER)
        if home or until == NEVER:
            is_lost = home in self._lost
            until = min(until, home_expected_at(self._renewed_at(home), since, self._restart if is_lost else NEVER))
            if is_lost:
                self._lost_since[shard] = since
        self._silent[shard] = since, until
        return max(SOON_S, until - at)
