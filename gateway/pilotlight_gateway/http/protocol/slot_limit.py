"""A bound on the requests of one kind at a time; others are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilotlight_core.model.errors import TooMuch


class SlotLimit:
    """At most `limit` slots. `what` and `retry_after` (seconds) are for the refusal."""

    def __init__(self, limit: int, what: str, *, retry_after: float) -> None:
        self._limit = limit
        self._what = what
        self._retry_after = retry_after
        self.taken = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot until the block ends.

        Raises:
            TooMuch: all slots are taken.
        """
        if self.taken >= self._limit:
            raise TooMuch(f"{self._limit} {self._what} already.", retry_after=self._retry_after)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
