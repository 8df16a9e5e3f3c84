"""Flows (version x tenant x class) and the heap that finds the next one of a class.

A flow's heap key is the counter's value at the time it was pushed. Counters mostly rise, so an old key is a lower
bound: when a flow comes up whose counter has risen since, it is pushed down to its true place, and the next is looked
at. A fall pushes a second, lower entry. Exactly the entries whose key equals `flow.key` count; all others are litter
that is dropped when it comes up, and swept when it outgrows the living. Every operation is O(log n) amortised.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator

from pilotlight_core.model.messages import CallDescriptor
from pilotlight_gateway.scheduler.counters import Counter, Counters

NOWHERE = math.nan
"""The key of a flow that is not in the heap: it equals no entry's key, not even itself."""
LITTER = 64
"""Dead heap entries that are tolerated beyond one for each living flow."""


class Entry:
    """One call in a queue, or picked from it and not settled yet."""

    __slots__ = ("call", "cost", "flow", "id", "next", "order", "pushed", "since", "waiting")

    def __init__(self, call: CallDescriptor, flow: Flow, cost: float, order: int, pushed: float) -> None:
        self.call = call
        self.id = call.call
        self.flow = flow
        self.cost = cost
        """Estimated GPU-milliseconds, as charged."""
        self.order = order
        self.pushed = pushed
        """The instant at which it entered this queue."""
        self.since = pushed - call.age_ms / 1000.0
        """The instant from which it has been waiting, here or elsewhere."""
        self.waiting = True
        self.next: Entry | None = None
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

    def __init__(self, line: ClassLine, tenant: str, counter: Counter, load: TenantLoad | None) -> None:
        self.line = line
        self.tenant = tenant
        self.counter = counter
        self.load = load
        """Shared with the tenant's other flows; None if there is no cap."""
        self.live = 0
        self.key = NOWHERE
        self.parked = False
        self._first: Entry | None = None
        self._last: Entry | None = None
        self._length = 0
        """Dead entries included."""

    def __iter__(self) -> Iterator[Entry]:
        entry = self._first
        while entry is not None:
            yield entry
            entry = entry.next

    def lowered(self) -> None:
        """Its counter fell: its place in the heap is too far back."""
        if self.counter.value < self.key:
            self.line.place(self)

    def append(self, entry: Entry) -> None:
        """Put a call at the end."""
        if self._last is None:
            self._first = entry
        else:
            self._last.next = entry
        self._last = entry
        self._length += 1

    def insert(self, entry: Entry) -> None:
        """Put a returned call back by its order: before everything that came after it."""
        before: Entry | None = None
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

    def pop(self) -> Entry:
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


class ClassLine:
    """The flows of one class at one version, the least served tenant first."""

    def __init__(self, counters: Counters, *, weight: float, cap: int | None) -> None:
        self.counters = counters
        self.weight = weight
        self.cap = cap
        """Calls of one tenant in flight from this version at most; None: no limit."""
        self.virtual = 0.0
        """Cost served of this class over its weight: the same counter, one level up."""
        self.live = 0
        self.flows: dict[str, Flow] = {}
        """The backlogged ones."""
        self._heap: list[tuple[float, int, Flow]] = []
        self._tick = itertools.count()
        counters.join(self)

    def least(self) -> float | None:
        """The smallest counter that may go next here; None if none may."""
        flow = self.head()
        return flow.counter.value if flow is not None else None

    def place(self, flow: Flow) -> None:
        """Give the flow a heap entry at its counter's value."""
        flow.key = flow.counter.value
        heapq.heappush(self._heap, (flow.key, next(self._tick), flow))
        if len(self._heap) > 2 * len(self.flows) + LITTER:
            self._heap = [item for item in self._heap if item[0] == item[2].key]
            heapq.heapify(self._heap)

    def head(self) -> Flow | None:
        """The flow that is next, with a true heap entry on top; None if none may go."""
        heap = self._heap
        while heap:
            key, _, flow = heap[0]
            if key != flow.key:
                heapq.heappop(heap)
            elif flow.counter.value != key:
                flow.key = flow.counter.value
                heapq.heapreplace(heap, (flow.key, next(self._tick), flow))
            elif self.cap is not None and flow.load is not None and flow.load.in_flight >= self.cap:
                heapq.heappop(heap)
                self._park(flow, flow.load)
            else:
                return flow
        return None

    def _park(self, flow: Flow, load: TenantLoad) -> None:
        flow.key = NOWHERE
        flow.parked = True
        load.parked.append(flow)

    def unpark(self, flow: Flow) -> None:
        """Its tenant dropped below the cap."""
        flow.parked = False
        self.place(flow)

    def grow(self, flow: Flow) -> None:
        """The flow has one call more; it joins if it had none."""
        flow.live += 1
        self.live += 1
        if flow.live == 1:
            self.flows[flow.tenant] = flow
            if flow.load is not None:
                flow.load.flows += 1
            self.counters.activate(flow.counter, flow)
            self.place(flow)

    def shrink(self, flow: Flow) -> None:
        """The flow has one call less; it leaves with the last."""
        flow.live -= 1
        self.live -= 1
        flow.tidy()
        if flow.live:
            return
        flow.key = NOWHERE
        if flow.load is not None:
            flow.load.flows -= 1
            if flow.parked:
                flow.parked = False
                flow.load.parked.remove(flow)
        del self.flows[flow.tenant]
        self.counters.deactivate(flow.counter, flow)
