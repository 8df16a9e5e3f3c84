"""In whose turn the proxy moves bytes: tenants have equal parts of its processor, however many connections each has.

Deficit round robin (Shreedhar and Varghese, 1995). In one turn of the event loop so many bytes are moved; who would
move more waits, and the waiting tenants are served in turn, each the same number of bytes. One that is alone waits for
nobody, and lets the loop come round. As soon as one of several has no connection that waits, the turn is over for all:
that tenant's connections are on their way to a socket and come again in a turn or two, and what is left of this one
would go to tenants with more of them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

TURN_BYTES = 1 << 20
"""In one turn of the loop: some hundred microseconds."""
PART_BYTES = 64 * 1024
"""Of a tenant, before the next one is served: as much as is moved at once."""
LEAST_BYTES = 4 * 1024
"""What moving fewer bytes costs, too."""


RECENT_TURNS = 8
"""For so long a tenant that moved bytes counts as one that comes again."""


class ByteTurns:
    """`call_soon` is the loop's."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], turn_bytes: int = TURN_BYTES) -> None:
        self._call_soon = call_soon
        self._turn_bytes = turn_bytes
        self._left = turn_bytes
        self._is_due = False
        self._turn = 0
        self._seen: OrderedDict[str, int] = OrderedDict()
        """By tenant that is to come again: its last turn. The longest ago comes first."""
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()
        self._deficits: dict[str, int] = {}
        """By tenant that waits: the bytes that it may move before the next one."""

    async def take(self, tenant: str, size: int) -> None:
        """Wait until so many bytes of a tenant may be moved."""
        cost = min(max(size, LEAST_BYTES), PART_BYTES)  # or it would never be served
        self._schedule()
        self._note(tenant)
        if len(self._seen) == 1 and not self._waiting and self._left > 0:
            self._left -= cost
            return
        moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append((cost, moved))
        await moved

    def _note(self, tenant: str) -> None:
        self._seen[tenant] = self._turn
        self._seen.move_to_end(tenant)

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_due = False
        self._left = self._turn_bytes
        self._turn += 1
        while self._seen and next(iter(self._seen.values())) < self._turn - RECENT_TURNS:
            self._seen.popitem(last=False)
        present = len(self._seen.keys() | self._waiting.keys())
        while self._waiting and self._left > 0:
            for tenant in list(self._waiting):
                if self._left > 0:
                    self._serve(tenant)
            if len(self._waiting) < present:
                break
        if self._waiting:
            self._schedule()

    def _serve(self, tenant: str) -> None:
        """Let a tenant move its part."""
        self._note(tenant)
        queue, deficit = self._waiting[tenant], self._deficits.get(tenant, 0) + PART_BYTES
        while queue and queue[0][0] <= deficit and self._left > 0:
            cost, moved = queue.popleft()
            if moved.done():  # its connection has ended
                continue
            moved.set_result(None)
            deficit -= cost
            self._left -= cost
        if queue:
            self._deficits[tenant] = min(deficit, PART_BYTES)
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
            self._deficits.pop(tenant, None)
