"""How much of the room for keys each tenant takes, as far as one gateway wrote it. Pure.

The bucket refuses what it has no room for, so that no key is forgotten before its time; these shares keep one tenant
from taking all of it. They forget at a restart, as the bound of the whole does not.
"""

from __future__ import annotations

from collections import deque

SLOTS = 24
"""Parts of a key's life in which bytes are counted together: what has expired is known to 1/24 of that."""
RECORD_BYTES = 400
"""A record without an answer, with what the server keeps around it."""


class Shares:
    """Bytes written within the last `life` seconds, by tenant; none may have more than `limit`."""

    def __init__(self, *, limit: int, life: float) -> None:
        self.limit = limit
        self._span = life / SLOTS
        self._slots: deque[tuple[int, dict[str, int]]] = deque()
        self._used: dict[str, int] = {}

    def has_room(self, tenant: str, size: int, at: float) -> bool:
        """Whether `size` bytes more are within the tenant's share at `at` (any clock's seconds)."""
        while self._slots and self._slots[0][0] < int(at / self._span) - SLOTS:
            self._forget(self._slots.popleft()[1])
        return self._used.get(tenant, 0) + size <= self.limit

    def count(self, tenant: str, size: int, at: float) -> None:
        """`size` bytes were written."""
        now = int(at / self._span)
        if not self._slots or self._slots[-1][0] < now:
            self._slots.append((now, {}))
        counted = self._slots[-1][1]
        counted[tenant] = counted.get(tenant, 0) + size
        self._used[tenant] = self._used.get(tenant, 0) + size

    def used(self, tenant: str) -> int:
        """Bytes that count now."""
        return self._used.get(tenant, 0)

    def _forget(self, counted: dict[str, int]) -> None:
        for tenant, size in counted.items():
            left = self._used[tenant] - size
            if left:
                self._used[tenant] = left
            else:
                del self._used[tenant]
