"""The fair queue of one version: which call is next.

Two levels, both by the smallest counter of received service:

1. the class. Its counter is cost over weight; interactive : standard : batch = 8 : 3 : 1. A class with calls waiting
   gets at least its weight's share of the cost, so batch is slow under load and never starved;
2. in the class, the tenant by its weight (`tier_queue`), then first come first served.

A tenant at its cap of calls in flight, and a tier without slots beside those kept for others (`TierLoad.unused`), are
passed over and save up nothing. So is a flow that holds its part of the slots, where only spare ones are left
(`slot_parts`).

The bound is that of start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM'96): while two classes, or two tenants of a
class, both have calls waiting, their service over their weights differs by at most one largest call of each over its
weight, plus the error of the estimates.

A pick is charged an estimate. It ends in exactly one of `settle`, which corrects the charge, `give_back` for a call
that an agent did not take, and `refund` for one that will not run. Idle flows cost only a counter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.call_messages import CallDescriptor
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.slot_parts import SlotParts
from pilotlight_gateway.home.tier_queue import (
    LEARNT,
    ClassQueue,
    Flow,
    FunctionCounters,
    QueueEntry,
    TierLoad,
    TierQueue,
)

WEIGHTS: Mapping[Priority, float] = {Priority.INTERACTIVE: 8.0, Priority.STANDARD: 3.0, Priority.BATCH: 1.0}
LEAST_COST = 0.01
"""GPU-milliseconds of the cheapest call: calls at no cost would let a tenant hold every slot."""
LEAST_WEIGHT = 1e-3
"""Without a least weight a tenant would never get another turn."""


@dataclass(frozen=True, kw_only=True)
class QueueStatistics:
    """Waiting calls per class, waiting flows, and picks that have not ended."""

    waiting: dict[str, int]
    flows: int
    in_flight: int


class FairQueue:
    """The calls of one version that wait for a container."""

    def __init__(self, counters: FunctionCounters, *, weights: Mapping[Priority, float] = WEIGHTS) -> None:
        self._classes: dict[str, ClassQueue] = {
            priority: ClassQueue(counters.classes[priority], weight=weights[priority]) for priority in Priority
        }
        self.classes = tuple(self._classes.values())
        """The highest first."""
        self._tiers: dict[int, TierLoad] = {}
        self.reserving = False
        """Whether any tier has ever had a reserve here."""
        self.parts: SlotParts | None = None
        """None: no slots have been spare here."""
        self._entries: dict[str, QueueEntry] = {}
        """Waiting calls, the oldest first except for returned ones."""
        self._back: dict[str, QueueEntry] = {}
        self._orders = itertools.count()
        self._in_flight = 0
        self._left: ClassQueue = self.classes[0]
        """The class that became empty last."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueueEntry]:
        return iter(self._entries.values())

    def push(
        self, call: CallDescriptor, *, cost: float, at: float, first: bool = False, guess: float = 0.0
    ) -> QueueEntry:
        """Queue a call that is not in the queue, at the end of its flow (`first`: at its head).

        `cost` is its estimate; 0: the recent mean of its tenant, or `guess` if there is none.
        """
        flow = self._flow(call)
        if call.reserved:
            self._reserve(flow.tier_queue.tier, call.reserved, at)
        cost = cost or flow.counter.mean or guess
        order = -1 if first else next(self._orders)
        entry = QueueEntry(call, flow, cost if cost > LEAST_COST else LEAST_COST, order, at)
        entry.ahead = len(self._entries)
        self._wait(entry, returned=first)
        return entry

    def pick(self, *, free: int | None = None, slots: int = 0, spare: int = 0, at: float = 0.0) -> QueueEntry | None:
        """Take the next call and charge its estimate; None if none may go.

        `free` of `slots` slots are free; slots kept for a tier are left to it, and the last `spare` ones to flows that
        hold less than their part. None: there are slots for all.
        """
        closed = self._closed(free, slots, at) if self.reserving and free is not None else ()
        if self.parts is not None and free is not None and free <= spare:
            flow = self._next_within(closed, self.parts, slots - spare)
        else:
            flow = self._next(closed)
        if flow is None:
            return None
        entry = flow.pop()
        del self._entries[entry.call_id]
        self._waited(entry)
        tier_queue = flow.tier_queue
        tier_queue.tier.in_flight += 1
        self._in_flight += 1
        if self.parts is not None:
            self.parts.hold(flow, 1)
        if closed:
            tier_queue.class_queue.passed_over(closed, flow.counter.value)
        counter = flow.counter
        counter.value += entry.cost / counter.weight
        tier_queue.class_queue.virtual += entry.cost / tier_queue.class_queue.weight
        return entry

    def charge_so_far(self, entry: QueueEntry, cost: float) -> None:
        """A picked call has cost `cost` so far and runs on: charge the excess over its estimate now."""
        if cost > entry.cost:
            self._charge(entry, cost - entry.cost)
            entry.cost = cost

    def settle(self, entry: QueueEntry, cost: float | None = None) -> None:
        """A picked call has ended and took `cost` GPU-milliseconds (None: the estimate stands)."""
        if cost is not None:
            if cost < LEAST_COST:
                cost = LEAST_COST
            flow, more = entry.flow, cost - entry.cost
            counter, class_queue = flow.counter, flow.tier_queue.class_queue
            mean = counter.mean
            # `model.ewma` in place, as this is done for each call.
            counter.mean = mean + LEARNT * (cost - mean) if mean else cost
            counter.add(more / counter.weight)
            class_queue.virtual += more / class_queue.weight
        self._landed(entry)

    def refund(self, entry: QueueEntry) -> None:
        self._charge(entry, -entry.cost)
        self._landed(entry)

    def give_back(self, entry: QueueEntry, call: CallDescriptor) -> QueueEntry:
        """Refund a picked call that did not start, and queue it at its place as `call` describes it now."""
        self._charge(entry, -entry.cost)
        self._landed(entry)
        again = QueueEntry(call, self._flow(call), entry.cost, entry.order, entry.pushed_at)
        again.since = entry.since
        self._wait(again, returned=True)
        return again

    def remove(self, call_id: str) -> QueueEntry | None:
        entry = self._entries.pop(call_id, None)
        if entry is not None:
            self._waited(entry)
        return entry

    def close(self) -> None:
        """Leave the counters of the function; only for an empty queue."""
        for queue in self.classes:
            queue.close()

    def of_class(self, priority: str) -> ClassQueue:
        """The queue of a class; an unknown class counts as standard."""
        return self._classes.get(priority) or self._classes[Priority.STANDARD]

    def flow(self, tenant: str, priority: str) -> Flow | None:
        """A tenant's backlogged flow of a class, if any."""
        return next(
            (
                f
                for tier_queue in self.of_class(priority).tier_queues
                if (f := tier_queue.flows.get(tenant)) is not None
            ),
            None,
        )

    def depth(self, tenant: str, priority: str) -> int:
        flow = self.flow(tenant, priority)
        return flow.live if flow is not None else 0

    def kept(self, rank: int, slots: int, at: float) -> int:
        """How many slots are kept for other tiers; every tier may use one."""
        if not self.reserving:
            return 0
        kept = sum(tier.unused(slots, at) for tier in self._tiers.values() if tier.rank != rank)
        return min(kept, max(0, slots - 1))

    def count_parts(self) -> None:
        """Slots are spare from now on."""
        self.parts = SlotParts()
        for entry in self._entries.values():
            self.parts.wait(entry.flow, 1)

    def kept_from(self, call: CallDescriptor, slots: int, spare: int, at: float) -> int:
        """How many slots are kept for others than this call: of other tiers, and `spare` ones."""
        kept = self.kept(call.tier_rank, slots, at)
        if self.parts is None or self.parts.is_within(call.tenant, self.of_class(call.priority).weight, slots - spare):
            return kept
        return min(kept + spare, max(0, slots - 1))

    def oldest(self) -> float | None:
        """Since when the oldest waiting call waits; None if none does."""
        firsts = [next(iter(waiting.values())).since for waiting in (self._entries, self._back) if waiting]
        return min(firsts, default=None)

    def waiting_by_class(self) -> dict[str, tuple[int, float]]:
        """How many calls of a class wait, and since when the first does; without classes of which none waits."""
        return {
            str(priority): (queue.live, min(flow.since for tier in queue.tier_queues for flow in tier.flows.values()))
            for priority, queue in self._classes.items()
            if queue.live
        }

    def waiting_flows(self) -> list[tuple[str, str, int, float]]:
        """The flows with waiting calls: tenant, class, how many wait, and since when the first does."""
        return [
            (flow.tenant, str(priority), flow.live, flow.since)
            for priority, queue in self._classes.items()
            for tier in queue.tier_queues
            for flow in tier.flows.values()
        ]

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(
            waiting={str(priority): queue.live for priority, queue in self._classes.items()},
            flows=sum(len(tier_queue.flows) for tier_queue in self._tier_queues()),
            in_flight=self._in_flight,
        )

    def check_integrity(self) -> None:
        flows = [flow for tier_queue in self._tier_queues() for flow in tier_queue.flows.values()]
        waiting = {entry.call_id for flow in flows for entry in flow if entry.waiting}
        require(waiting == set(self._entries), "what waits in flows is not what waits")
        require(sum(queue.live for queue in self.classes) == len(self._entries), "classes miscount")
        require(sum(flow.live for flow in flows) == len(self._entries), "lines miscount")
        require(all(f.live == sum(e.waiting for e in f) > 0 for f in flows), "a flow miscounts")
        require(set(self._back) <= set(self._entries), "what came back does not wait")
        require(sum(tier.in_flight for tier in self._tiers.values()) == self._in_flight, "tiers miscount")
        require(not any(math.isnan(f.key) for f in flows), "a flow is not in the heap")
        if self.parts is not None:
            self.parts.check_integrity(flows)

    def _tier_queues(self) -> Iterator[TierQueue]:
        return (tier_queue for queue in self.classes for tier_queue in queue.tier_queues)

    def _closed(self, free: int, slots: int, at: float) -> Collection[TierLoad]:
        return [tier for tier in self._tiers.values() if free <= self.kept(tier.rank, slots, at)]

    def _reserve(self, tier: TierLoad, share: float, at: float) -> None:
        tier.share = min(1.0, share)
        tier.seen = max(tier.seen, at)
        self.reserving = True

    def _next(self, closed: Collection[TierLoad]) -> Flow | None:
        found: Flow | None = None
        best = math.inf
        stuck = False
        for queue in self.classes:
            if queue.live and queue.virtual < best:
                flow = queue.head(closed)
                if flow is None:
                    stuck = True
                else:
                    found, best = flow, queue.virtual
        if stuck and found is not None:
            for queue in self.classes:  # a class that was passed over saves up nothing
                if queue.live and queue.virtual < best:
                    queue.virtual = best
        return found

    def _next_within(self, closed: Collection[TierLoad], parts: SlotParts, slots: int) -> Flow | None:
        """The next flow that holds less than its part of `slots`. As each that is passed over holds a slot, they are
        no more than there are.
        """
        passed: list[Flow] = []
        while (flow := self._next(closed)) is not None:
            if parts.is_within(flow.tenant, flow.tier_queue.class_queue.weight, slots):
                break
            flow.tier_queue.set_aside(flow)
            passed.append(flow)
        for other in passed:
            if flow is not None and flow.tier_queue.class_queue is other.tier_queue.class_queue:
                other.counter.value = max(other.counter.value, flow.counter.value)
            other.tier_queue.place(other)
        return flow

    def _flow(self, call: CallDescriptor) -> Flow:
        queue = self._classes.get(call.priority) or self._classes[Priority.STANDARD]
        tier_queue = queue.tier_queue(call.tier_rank) or self._tier_queue_of(queue, call.tier_rank)
        tenant, weight = call.tenant, call.weight
        flow = tier_queue.flows.get(tenant)
        if weight < LEAST_WEIGHT:
            weight = LEAST_WEIGHT
        if flow is None:
            flow = Flow(tier_queue, tenant, tier_queue.counters.of(tenant))
            flow.counter.weight = weight
        elif flow.counter.weight != weight:
            flow.counter.weight = weight
        return flow

    def _tier_queue_of(self, queue: ClassQueue, rank: int) -> TierQueue:
        return queue.open(self._tiers.setdefault(rank, TierLoad(rank)))

    def _wait(self, entry: QueueEntry, *, returned: bool) -> None:
        self._entries[entry.call_id] = entry
        flow = entry.flow
        if returned:
            self._back[entry.call_id] = entry
            flow.insert(entry)
        else:
            flow.append(entry)
        tier_queue = flow.tier_queue
        if not tier_queue.class_queue.live:
            self._lift(tier_queue.class_queue)
        tier_queue.grow(flow)
        if self.parts is not None:
            self.parts.wait(flow, 1)

    def _waited(self, entry: QueueEntry) -> None:
        entry.waiting = False
        tier_queue = entry.flow.tier_queue
        if self.parts is not None:
            self.parts.wait(entry.flow, -1)
        tier_queue.shrink(entry.flow)
        if not tier_queue.class_queue.live:
            self._left = tier_queue.class_queue
        if self._back:
            self._back.pop(entry.call_id, None)

    def _lift(self, queue: ClassQueue) -> None:
        # As for tenants: an idle class saves up nothing.
        active = [other.virtual for other in self.classes if other.live] or [self._left.virtual]
        queue.virtual = max(queue.virtual, min(active))

    def _charge(self, entry: QueueEntry, cost: float) -> None:
        counter = entry.flow.counter
        counter.add(cost / counter.weight)
        class_queue = entry.flow.tier_queue.class_queue
        class_queue.virtual += cost / class_queue.weight

    def _landed(self, entry: QueueEntry) -> None:
        self._in_flight -= 1
        if self.parts is not None:
            self.parts.hold(entry.flow, -1)
        entry.flow.tier_queue.tier.in_flight -= 1
