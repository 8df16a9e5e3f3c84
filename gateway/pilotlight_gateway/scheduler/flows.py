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
from collections import deque

from pilotlight_core.model.messages import CallDescriptor
from pilotlight_gateway.scheduler.counters import Counter, Counters

NOWHERE = math.nan
"""The key of a flow that is not in the heap: it equals no entry's key, not even itself."""
LITTER = 64
"""Dead heap entries that are tolerated beyond one for each living flow."""


class Entry:
    """One call in a queue, or picked from it and not settled yet."""

    __slots__ = ("call", "cost", "flow", "order", "pushed", "since", "waiting")

    def __init__(self, call: CallDescriptor, flow: Flow, *, cost: float, order: int, pushed: float) -> None:
        self.call = call
        self.flow = flow
        self.cost = cost
        """Estimated GPU-milliseconds, as charged."""
        self.order = order
        self.pushed = pushed
        """The instant at which it entered this queue."""
        self.since = pushed - call.age_ms / 1000.0
        """The instant from which it has been waiting, here or elsewhere."""
        self.waiting = True


class TenantLoad:
    """What one tenant has running from one version's queue, whatever the class."""

    __slots__ = ("flows", "in_flight", "parked")

    def __init__(self) -> None:
        self.in_flight = 0
        self.flows = 0
        self.parked: list[Flow] = []
        """Its flows that wait for the tenant to drop below its cap."""


class Flow:
    """One tenant's calls of one class, first come first served. Removed calls stay as dead entries for a while."""

    __slots__ = ("counter", "entries", "key", "line", "live", "load", "parked", "tenant")

    def __init__(self, line: ClassLine, tenant: str, counter: Counter, load: TenantLoad) -> None:
        self.line = line
        self.tenant = tenant
        self.counter = counter
        self.load = load
        self.entries: deque[Entry] = deque()
        self.live = 0
        self.key = NOWHERE
        self.parked = False

    def lowered(self) -> None:
        """Its counter fell: its place in the heap is too far back."""
        if self.counter.value < self.key:
            self.line.place(self)

    def insert(self, entry: Entry) -> None:
        """Put a returned call back by its order: before everything that came after it."""
        ahead = 0
        for other in self.entries:
            if other.order > entry.order:
                break
            ahead += 1  # only other returned calls and dead entries are older: few
        self.entries.insert(ahead, entry)

    def first(self) -> Entry:
        """Take the first call that still waits. There is one."""
        while not (entry := self.entries.popleft()).waiting:
            pass
        return entry

    def tidy(self) -> None:
        """Forget dead entries once they outnumber the living."""
        if len(self.entries) > 2 * self.live + LITTER:
            self.entries = deque(entry for entry in self.entries if entry.waiting)


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
            elif self.cap is not None and flow.load.in_flight >= self.cap:
                heapq.heappop(heap)
                self._park(flow)
            else:
                return flow
        return None

    def _park(self, flow: Flow) -> None:
        flow.key = NOWHERE
        flow.parked = True
        flow.load.parked.append(flow)

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
            flow.load.flows += 1
            self.counters.activate(flow.counter, flow)
            self.place(flow)

    def shrink(self, flow: Flow) -> None:
        """The flow has one call less; it leaves with the last."""
        flow.live -= 1
        self.live -= 1
        if flow.live:
            flow.tidy()
            return
        flow.entries.clear()
        flow.key = NOWHERE
        flow.load.flows -= 1
        if flow.parked:
            flow.parked = False
            flow.load.parked.remove(flow)
        del self.flows[flow.tenant]
        self.counters.deactivate(flow.counter, flow)
