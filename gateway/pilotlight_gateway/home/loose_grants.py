"""The grants that a home has given out and has not seen the end of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotlight_gateway.home.integrity import require
from pilotlight_gateway.home.version_queue import OutstandingGrant, VersionQueue

DONE_WITHIN = 5.0
"""Seconds that a grant whose slot is free is kept for the word on what it cost."""


class GrantBook:
    """By call. A grant is *loose* when its slot is free and its origin has not said what it cost."""

    def __init__(self) -> None:
        self.by_call: dict[str, OutstandingGrant] = {}
        self._loose: dict[str, float] = {}
        """Call -> since when; in that order."""

    def __len__(self) -> int:
        return len(self.by_call)

    def enter(self, granted: OutstandingGrant) -> None:
        self.by_call[granted.grant.call_id] = granted

    def take(self, granted: OutstandingGrant) -> VersionQueue:
        """Strike it out; returns the desk of its version."""
        del self.by_call[granted.grant.call_id]
        self._loose.pop(granted.grant.call_id, None)
        return granted.desk

    def loosen(self, calls: Iterable[str], at: float, container: str | None = None) -> None:
        """The slots of calls have become free, in any container or a certain one; their origins may still tell."""
        for call in calls:
            granted = self.by_call.get(call)
            if granted is not None and container in (None, granted.grant.container):
                self._loose.setdefault(call, at)

    def is_loose(self, call: str) -> bool:
        return call in self._loose

    def take_untold(self, at: float) -> Iterator[OutstandingGrant]:
        """Strike out, one after the other, those that have been loose for so long that nothing will be told."""
        while self._loose:
            call, since = next(iter(self._loose.items()))
            if since > at - DONE_WITHIN:
                return
            granted = self.by_call[call]
            self.take(granted)
            yield granted

    def untold_at(self) -> float | None:
        """When `take_untold` has something to strike out; None: never."""
        return next(iter(self._loose.values())) + DONE_WITHIN if self._loose else None

    def check_integrity(self) -> None:
        """Raise AssertionError if a loose grant is none."""
        require(set(self._loose) <= set(self.by_call), "a loose grant is not known")
