"""How much of what there is little of one tenant may have at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class AskingTurns:
    """Lets each tenant do so many things at a time; the others of it wait, and nobody else does."""

    def __init__(self, *, at_a_time: int) -> None:
        self._at_a_time = at_a_time
        self._free: dict[Hashable, asyncio.Semaphore] = {}
        self._askers: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self._free)

    @asynccontextmanager
    async def taking(self, tenant: Hashable) -> AsyncIterator[None]:
        """One turn of a tenant, until the block ends."""
        free = self._free.setdefault(tenant, asyncio.Semaphore(self._at_a_time))
        self._askers[tenant] += 1
        try:
            async with free:
                yield
        finally:
            self._askers[tenant] -= 1
            if not self._askers[tenant]:
                del self._askers[tenant], self._free[tenant]
