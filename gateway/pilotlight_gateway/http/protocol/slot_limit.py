"""A bound on what may go on at the same time: beyond it a request is refused, not queued."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilotlight_core.model.errors import TooMuch


class SlotLimit:
    """At most `limit` at a time. `what` names them in the refusal, `retry_after` says when to come again (seconds)."""

    def __init__(self, limit: int, what: str, *, retry_after: float) -> None:
        self._limit = limit
        self._what = what
        self._retry_after = retry_after
        self.taken = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot until the block ends.

        Raises:
            TooMuch: all of them are taken.
        """
        if self.taken >= self._limit:
            raise TooMuch(f"{self._limit} {self._what} already.", retry_after=self._retry_after)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
