"""Virtual counters, and the flows that a version's queue keeps under them, by class and tier.

The Virtual Token Counter (Sheng et al., "Fairness in Serving Large Language Models", OSDI'24, arXiv 2401.00588) is
start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM'96) for work whose cost is only known afterwards. A tenant's
`Counter` is its received service in GPU-milliseconds over its weight; the backlogged tenant with the smallest one is
next. The service of two tenants that stay backlogged differs by a bounded amount.

    charge    pick:     value += estimate
    correct   running:  value += cost so far - estimate   (only where it is more)
              end:      value += actual - estimate        (may lower it)
    refund    returned: value -= estimate                 (it never ran)
    lift      idle -> active: value = max(value, the smallest value of the active)

Without the lift an idle tenant could save up service and then exclude all others. The counters belong to the
*function*, so two versions give a tenant no second share.

A `TierQueue` holds the flows (version, tenant, class) of one class and tier in a heap. The key of a flow is its counter
when it was pushed. Counters mostly rise, so an old key is a lower bound: at the top of the heap, a flow with a higher
counter is pushed down to its place. So a charge costs nothing in other queues. A counter that falls pushes a second,
lower entry. Only an entry with the key `flow.key` is valid; others are dropped at the top, and swept when they
outnumber the valid ones. Every operation is O(log n) amortised.

The tiers of a class have queues of their own over the same counters, so that a tier without free slots is passed over
without a look at its flows.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterator

from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant
from pilotlight_core.model.spec import Priority

KEPT = 1024
"""Counters that are kept before idle ones are checked for a sweep."""
LEARNT = 0.1
"""Weight of the newest call in the mean cost of a tenant's calls."""
NOWHERE = math.nan
"""The key of a flow outside the heap: it equals no key, not even itself."""
DEAD_AT_MOST = 64
"""Dead entries that are tolerated beyond one for each valid one."""
RESERVE_S = 60.0
"""How long a tier's share of a version stays reserved after its last call: unused slots serve no caller."""
ROUNDING = 1e-9
"""0.2 x 5 slots is one slot, also in floating point."""


class Counter:
    """The service of one tenant over its weight, and its backlogged flows: one per version and tier."""

    __slots__ = ("backlog", "mean", "value", "weight")

    def __init__(self) -> None:
        self.value = 0.0
        self.weight = 1.0
        """As of the tenant's last call."""
        self.mean = 0.0
        """Cost of its calls, smoothed over about the last ten; 0: unknown."""
        self.backlog: list[Flow] = []

    def add(self, cost: float) -> None:
        """Charge (if negative, refund) GPU-milliseconds over the tenant's weight."""
        self.value += cost
        if cost < 0:
            for flow in self.backlog:
                flow.lowered()


class Counters:
    """The counters of one class of one function."""

    def __init__(self) -> None:
        self._of: dict[str, Counter] = {}
        self._queues: list[TierQueue] = []
        self._left = Counter()
        """Of the tenant that became idle last: the floor while no tenant is active."""
        self._sweep_at = KEPT

    def __len__(self) -> int:
        return len(self._of)

    def join(self, queue: TierQueue) -> None:
        """Include the flows of a queue in the floor."""
        self._queues.append(queue)

    def leave(self, queue: TierQueue) -> None:
        self._queues.remove(queue)

    def of(self, tenant: str) -> Counter:
        counter = self._of.get(tenant)
        if counter is None:
            if len(self._of) >= self._sweep_at:
                self._sweep()
            counter = self._of[tenant] = Counter()
        return counter

    def known(self, tenant: str) -> Counter | None:
        return self._of.get(tenant)

    def values(self) -> dict[str, float]:
        """The service of every known tenant, for `restore` in another home."""
        return {tenant: counter.value for tenant, counter in self._of.items()}

    def restore(self, values: dict[str, float]) -> None:
        """Continue from another home's `values`; nothing waits here yet."""
        for tenant, value in values.items():
            self.of(tenant).value = value

    def activate(self, counter: Counter, flow: Flow) -> None:
        """A flow of this counter has become backlogged: lift the counter."""
        if not counter.backlog:
            counter.value = max(counter.value, self.floor())
        counter.backlog.append(flow)

    def deactivate(self, counter: Counter, flow: Flow) -> None:
        counter.backlog.remove(flow)
        self._left = counter

    def floor(self) -> float:
        """The least service among the active tenants, or of the tenant that became idle last."""
        least = [value for queue in self._queues if (value := queue.least()) is not None]
        return min(least) if least else self._left.value

    def _sweep(self) -> None:
        # An idle tenant at or below the floor would be lifted to it anyway.
        floor = self.floor()
        self._of = {name: c for name, c in self._of.items() if c.backlog or c.value > floor}
        self._sweep_at = max(KEPT, 2 * len(self._of))


class FunctionCounters:
    """All counters of one function, shared by its versions."""

    def __init__(self) -> None:
        self.classes: dict[Priority, Counters] = {priority: Counters() for priority in Priority}


class QueueEntry:
    """One call that waits, or that was picked and has not ended."""

    __slots__ = (
        "ahead", "call", "call_id", "cost", "flow", "grant", "granted_at", "leaves_at", "next", "order", "pushed_at",
        "since", "waiting",
    )  # fmt: skip

    grant: Grant
    """Set when it is granted, with `granted_at`: see `GrantBook`."""
    granted_at: float

    def __init__(self, call: CallDescriptor, flow: Flow, cost: float, order: int, pushed_at: float) -> None:
        self.call = call
        self.call_id = call.call_id
        self.flow = flow
        self.cost = cost
        """GPU-milliseconds as charged: the estimate, or the cost so far where that is more."""
        self.order = order
        self.pushed_at = pushed_at
        self.since = pushed_at - call.age_ms / 1000.0
        """Since when it has been waiting, here or at another home."""
        self.leaves_at = math.inf
        """When its time in the queue is over."""
        self.ahead = 0
        """How many calls waited when it came."""
        self.waiting = True
        self.next: QueueEntry | None = None
        """The entry behind it in its flow."""


class Flow:
    """One tenant's calls of one class, first come first served.

    The entries are chained: separate deques for ten thousand flows would not fit into the processor's cache. Removed
    calls stay as dead entries for a while.
    """

    __slots__ = ("_first", "_last", "_length", "counter", "key", "live", "tenant", "tier_queue")

    def __init__(self, tier_queue: TierQueue, tenant: str, counter: Counter) -> None:
        self.tier_queue = tier_queue
        self.tenant = tenant
        self.counter = counter
        self.live = 0
        self.key = NOWHERE
        self._first: QueueEntry | None = None
        self._last: QueueEntry | None = None
        self._length = 0
        """Including dead entries."""

    def __iter__(self) -> Iterator[QueueEntry]:
        entry = self._first
        while entry is not None:
            yield entry
            entry = entry.next

    @property
    def cost(self) -> float:
        """About the charge of its next pick. It has calls."""
        return self._first.cost if self._first is not None else 0.0

    @property
    def since(self) -> float:
        """Since when its first call waits. It has calls."""
        entry = self._first
        while entry is not None and not entry.waiting:
            entry = entry.next
        assert entry is not None  # noqa: S101 - a flow without live calls is in no heap
        return entry.since

    def lowered(self) -> None:
        """Move up in the heap, as the counter fell."""
        if self.counter.value < self.key:
            self.tier_queue.place(self)

    def append(self, entry: QueueEntry) -> None:
        if self._last is None:
            self._first = entry
        else:
            self._last.next = entry
        self._last = entry
        self._length += 1

    def insert(self, entry: QueueEntry) -> None:
        """Put a returned call back by its order."""
        before: QueueEntry | None = None
        after = self._first
        while after is not None and after.order <= entry.order:
            before, after = after, after.next  # few: only returned calls and dead entries are older
        entry.next = after
        if before is None:
            self._first = entry
        else:
            before.next = entry
        if after is None:
            self._last = entry
        self._length += 1

    def pop(self) -> QueueEntry:
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
        """Forget dead entries once they outnumber the waiting ones, or none waits."""
        if self.live and self._length <= 2 * self.live + DEAD_AT_MOST:
            return
        living = [entry for entry in self if entry.waiting]
        self._first = self._last = None
        self._length = 0
        for entry in living:
            entry.next = None
            self.append(entry)


class TierLoad:
    """Calls of one tier in flight at one version, of any class."""

    __slots__ = ("in_flight", "rank", "seen", "share")

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.share = 0.0
        """The part of the slots that is kept for it."""
        self.in_flight = 0
        self.seen = float("-inf")
        """When its last call with a reserve came."""

    def unused(self, slots: int, at: float) -> int:
        """How many of `slots` are kept for it and unused."""
        if not self.share or (at - self.seen > RESERVE_S and not self.in_flight):
            return 0
        return max(0, int(self.share * slots + ROUNDING) - self.in_flight)


class TierQueue:
    """The flows of one class and one tier at one version, the least served tenant first."""

    __slots__ = ("_heap", "_tick", "base", "class_queue", "counters", "flows", "tier")

    def __init__(self, class_queue: ClassQueue, tier: TierLoad) -> None:
        self.class_queue = class_queue
        self.tier = tier
        self.counters = class_queue.counters
        self.base = float("-inf")
        """The service of others while this queue was passed over, which its tenants have not saved up."""
        self.flows: dict[str, Flow] = {}
        self._heap: list[tuple[float, int, Flow]] = []
        self._tick = itertools.count()
        self.counters.join(self)

    def least(self) -> float | None:
        """The smallest counter that may go next; None if none may."""
        flow = self.head()
        return flow.counter.value if flow is not None else None

    def place(self, flow: Flow) -> None:
        """Give the flow a heap entry at its counter's value."""
        flow.key = flow.counter.value
        heapq.heappush(self._heap, (flow.key, next(self._tick), flow))
        if len(self._heap) > 2 * len(self.flows) + DEAD_AT_MOST:
            self._heap = [item for item in self._heap if item[0] == item[2].key]
            heapq.heapify(self._heap)

    def set_aside(self, flow: Flow) -> None:
        """Leave a flow out until it is placed again."""
        flow.key = NOWHERE

    def head(self) -> Flow | None:
        """The next flow, with a valid heap entry on top; None if none may go."""
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
            else:
                return flow
        return None

    def grow(self, flow: Flow) -> None:
        """Count one call more; the flow joins with the first and leaves with the last (`shrink`)."""
        flow.live += 1
        self.class_queue.live += 1
        if flow.live == 1:
            self.flows[flow.tenant] = flow
            self.counters.activate(flow.counter, flow)
            self.place(flow)

    def shrink(self, flow: Flow) -> None:
        flow.live -= 1
        self.class_queue.live -= 1
        flow.tidy()
        if flow.live:
            return
        flow.key = NOWHERE
        del self.flows[flow.tenant]
        self.counters.deactivate(flow.counter, flow)


class ClassQueue:
    """One class at one version: its tier queues, and its own counter among the classes."""

    __slots__ = ("_by_rank", "counters", "live", "tier_queues", "virtual", "weight")

    def __init__(self, counters: Counters, *, weight: float) -> None:
        self.counters = counters
        self.weight = weight
        self.virtual = 0.0
        """Cost served of this class over its weight."""
        self.live = 0
        self.tier_queues: list[TierQueue] = []
        self._by_rank: dict[int, TierQueue] = {}

    def tier_queue(self, rank: int) -> TierQueue | None:
        return self._by_rank.get(rank)

    def open(self, tier: TierLoad) -> TierQueue:
        tier_queue = self._by_rank[tier.rank] = TierQueue(self, tier)
        self.tier_queues.append(tier_queue)
        return tier_queue

    def head(self, closed: Collection[TierLoad]) -> Flow | None:
        """The next flow whose tier is not in `closed`; None if none may go."""
        if len(self.tier_queues) == 1 and not closed:
            return self.tier_queues[0].head()
        found: Flow | None = None
        for tier_queue in self.tier_queues:
            if tier_queue.flows and tier_queue.tier not in closed:
                flow = tier_queue.head()
                if flow is not None and (found is None or flow.key < found.key):
                    found = flow
        return found

    def passed_over(self, closed: Collection[TierLoad], served: float) -> None:
        """A flow with counter `served` was picked while the tiers in `closed` were passed over."""
        for tier_queue in self.tier_queues:
            if tier_queue.flows and tier_queue.tier in closed:
                tier_queue.base = max(tier_queue.base, served)

    def close(self) -> None:
        """Leave the counters of the function."""
        for tier_queue in self.tier_queues:
            self.counters.leave(tier_queue)
