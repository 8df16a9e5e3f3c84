"""Lines: the flows of one class and one tier, and the heap that finds the next one.

A flow's heap key is the counter's value at the time it was pushed. Counters mostly rise, so an old key is a lower
bound: when a flow comes up whose counter has risen since, it is pushed down to its true place, and the next is looked
at. A fall pushes a second, lower entry. Exactly the entries whose key equals `flow.key` count; all others are litter
that is dropped when it comes up, and swept when it outgrows the living. Every operation is O(log n) amortised.

The tiers of a class are lines of their own over the same counters, so that one that may not go now (the room that is
left is kept for another) is passed over without a look at its flows.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection

from pilotlight_gateway.home.counters import Counters
from pilotlight_gateway.home.flows import LITTER, NOWHERE, Flow, TenantLoad

RESERVED_FOR = 60.0
"""Seconds after its last call for which a tier's share of a version is kept free: a slot for nobody helps nobody."""
ROUNDING = 1e-9
"""0.2 x 5 slots is one slot, also in floating point."""


class TierLoad:
    """What the calls of one tier have running at one version, whatever their class."""

    __slots__ = ("in_flight", "rank", "seen", "share")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.share = 0.0
        """The part of the slots that is kept for it."""
        self.in_flight = 0
        self.seen = float("-inf")
        """When its last call came that has a reserve."""

    def unused(self, slots: int, at: float) -> int:
        """The slots of `slots` that are kept for it and not in use; none once nobody has asked for long."""
        if not self.share or (at - self.seen > RESERVED_FOR and not self.in_flight):
            return 0
        return max(0, int(self.share * slots + ROUNDING) - self.in_flight)


class TierQueue:
    """The flows of one class and one tier at one version, the least served tenant first."""

    __slots__ = ("_heap", "_tick", "base", "cap", "counters", "flows", "of", "tier")

    def __init__(self, of: ClassQueue, tier: TierLoad, *, cap: int | None) -> None:
        self.of = of
        self.tier = tier
        self.counters = of.counters
        self.cap = cap
        """Calls of one tenant in flight from this version at most; None: no limit."""
        self.base = float("-inf")
        """What was served while this line might not go: its tenants have not saved that up."""
        self.flows: dict[str, Flow] = {}
        """The backlogged ones."""
        self._heap: list[tuple[float, int, Flow]] = []
        self._tick = itertools.count()
        self.counters.join(self)

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
            elif (value := flow.counter.value) != key or key < self.base:
                if value < self.base:
                    flow.counter.value = value = self.base
                flow.key = value
                heapq.heapreplace(heap, (value, next(self._tick), flow))
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
        self.of.live += 1
        if flow.live == 1:
            self.flows[flow.tenant] = flow
            if flow.load is not None:
                flow.load.flows += 1
            self.counters.activate(flow.counter, flow)
            self.place(flow)

    def shrink(self, flow: Flow) -> None:
        """The flow has one call less; it leaves with the last."""
        flow.live -= 1
        self.of.live -= 1
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


class ClassQueue:
    """One class at one version: its lines, and its own counter among the classes."""

    __slots__ = ("_by_rank", "counters", "lines", "live", "virtual", "weight")

    def __init__(self, counters: Counters, *, weight: float) -> None:
        self.counters = counters
        self.weight = weight
        self.virtual = 0.0
        """Cost served of this class over its weight: the same counter as a tenant's, one level up."""
        self.live = 0
        self.lines: list[TierQueue] = []
        self._by_rank: dict[int, TierQueue] = {}

    def line(self, rank: int) -> TierQueue | None:
        """The line of a tier, if it has one yet."""
        return self._by_rank.get(rank)

    def open(self, tier: TierLoad, cap: int | None) -> TierQueue:
        """Make the line of a tier."""
        line = self._by_rank[tier.rank] = TierQueue(self, tier, cap=cap)
        self.lines.append(line)
        return line

    def head(self, closed: Collection[TierLoad]) -> Flow | None:
        """The flow that is next, of those whose tier is not closed; None if none may go."""
        if len(self.lines) == 1 and not closed:
            return self.lines[0].head()
        found: Flow | None = None
        for line in self.lines:
            if line.flows and line.tier not in closed:
                flow = line.head()
                if flow is not None and (found is None or flow.key < found.key):
                    found = flow
        return found

    def passed_over(self, closed: Collection[TierLoad], served: float) -> None:
        """A flow was served whose counter stood at `served`, while some tiers might not go: they save nothing up."""
        for line in self.lines:
            if line.flows and line.tier in closed:
                line.base = max(line.base, served)

    def close(self) -> None:
        """The version is no more: leave the function's counters."""
        for line in self.lines:
            self.counters.part(line)
