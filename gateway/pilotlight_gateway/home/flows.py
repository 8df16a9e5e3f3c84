"""Flows (version x tenant x class): one tenant's calls of one class, first come first served."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pilotlight_core.model.messages.agent_messages import CallDescriptor
from pilotlight_gateway.home.counters import Counter

if TYPE_CHECKING:
    from pilotlight_gateway.home.tier_queue import TierQueue

NOWHERE = math.nan
"""The key of a flow that is not in the heap: it equals no entry's key, not even itself."""
LITTER = 64
"""Dead entries that are tolerated beyond one for each living one."""


class QueueEntry:
    """One call in a queue, or picked from it and not settled yet."""

    __slots__ = ("call", "cost", "flow", "id", "next", "order", "pushed", "since", "waiting")

    def __init__(self, call: CallDescriptor, flow: Flow, cost: float, order: int, pushed: float) -> None:
        self.call = call
        self.id = call.call_id
        self.flow = flow
        self.cost = cost
        """GPU-milliseconds as charged: the estimate, or what it has cost so far where that is more."""
        self.order = order
        self.pushed = pushed
        """The instant at which it entered this queue."""
        self.since = pushed - call.age_ms / 1000.0
        """The instant from which it has been waiting, here or elsewhere."""
        self.waiting = True
        self.next: QueueEntry | None = None
        """Behind it in its flow."""


class TenantLoad:
    """What one tenant has running from one version's queue, whatever the class."""

    __slots__ = ("flows", "in_flight", "parked")

    def __init__(self) -> None:
        self.in_flight = 0
        self.flows = 0
        self.parked: list[Flow] = []
        """Its flows that wait for the tenant to drop below its cap."""


class Flow:
    """One tenant's calls of one class, first come first served.

    A chain through the entries, since a deque of its own for each of ten thousand flows would not fit into the
    processor's cache. Removed calls stay as dead entries for a while.
    """

    __slots__ = ("_first", "_last", "_length", "counter", "key", "line", "live", "load", "parked", "tenant")

    def __init__(self, line: TierQueue, tenant: str, counter: Counter, load: TenantLoad | None) -> None:
        self.line = line
        self.tenant = tenant
        self.counter = counter
        self.load = load
        """Shared with the tenant's other flows; None if there is no cap."""
        self.live = 0
        self.key = NOWHERE
        self.parked = False
        self._first: QueueEntry | None = None
        self._last: QueueEntry | None = None
        self._length = 0
        """Dead entries included."""

    def __iter__(self) -> Iterator[QueueEntry]:
        entry = self._first
        while entry is not None:
            yield entry
            entry = entry.next

    @property
    def cost(self) -> float:
        """What its next pick will be charged, or about that. It has calls."""
        return self._first.cost if self._first is not None else 0.0

    def lowered(self) -> None:
        """Its counter fell: its place in the heap is too far back."""
        if self.counter.value < self.key:
            self.line.place(self)

    def append(self, entry: QueueEntry) -> None:
        """Put a call at the end."""
        if self._last is None:
            self._first = entry
        else:
            self._last.next = entry
        self._last = entry
        self._length += 1

    def insert(self, entry: QueueEntry) -> None:
        """Put a returned call back by its order: before everything that came after it."""
        before: QueueEntry | None = None
        after = self._first
        while after is not None and after.order <= entry.order:
            before, after = after, after.next  # only other returned calls and dead entries are older: few
        entry.next = after
        if before is None:
            self._first = entry
        else:
            before.next = entry
        if after is None:
            self._last = entry
        self._length += 1

    def pop(self) -> QueueEntry:
        """Take the first call that still waits. There is one."""
        entry = self._first
        while entry is not None and not entry.waiting:
            entry = entry.next
            self._length -= 1
        assert entry is not None  # noqa: S101 - a flow without live calls is in no heap
        self._first = entry.next
        self._length -= 1
        if entry.next is None:
            self._last = None
        entry.next = None
        return entry

    def tidy(self) -> None:
        """Forget dead entries once they outnumber the living; all of them if nothing lives."""
        if self.live and self._length <= 2 * self.live + LITTER:
            return
        living = [entry for entry in self if entry.waiting]
        self._first = self._last = None
        self._length = 0
        for entry in living:
            entry.next = None
            self.append(entry)
