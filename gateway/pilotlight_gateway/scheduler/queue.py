"""The fair queue of one version: which call is next.

Two levels, both by the smallest counter of service received:

1. the class. Its counter is cost over weight, interactive : standard : batch = 8 : 3 : 1. A class that always has
   calls waiting gets at least its weight's share of the cost served, so batch is slow under load and never starved;
   what a class does not use goes to the others.
2. in the class, the tenant (`counters.py`), then first come first served.

A pick is charged at an estimate. It ends in exactly one of `settle` (it ran: correct the charge) and `give_back` (an
agent did not take it: refund, and back to the place it came from). `remove` takes a waiting call out by id.
Memory is a few objects per backlogged flow and one per call; idle flows cost nothing but a counter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pilotlight_core.model.messages import CallDescriptor
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.scheduler.counters import FunctionCounters
from pilotlight_gateway.scheduler.flows import ClassLine, Entry, Flow, TenantLoad
from pilotlight_gateway.scheduler.integrity import require

WEIGHTS: Mapping[Priority, float] = {Priority.INTERACTIVE: 8.0, Priority.STANDARD: 3.0, Priority.BATCH: 1.0}
LEAST_COST = 0.01
"""GPU-milliseconds that the cheapest call counts: a free one would let its tenant hold every slot unnoticed."""


@dataclass(frozen=True, kw_only=True)
class QueueStatistics:
    """How a queue is: calls waiting per class, tenants waiting, calls picked and not settled."""

    waiting: dict[str, int]
    flows: int
    in_flight: int


class FairQueue:
    """The calls of one version that wait for a container."""

    def __init__(
        self,
        counters: FunctionCounters,
        *,
        weights: Mapping[Priority, float] = WEIGHTS,
        tenant_in_flight: int | None = None,
    ) -> None:
        self._lines: dict[str, ClassLine] = {
            priority: ClassLine(counters.classes[priority], weight=weights[priority], cap=tenant_in_flight)
            for priority in Priority
        }
        self._all = tuple(self._lines.values())
        self._cap = tenant_in_flight
        self._tenants: dict[str, TenantLoad] = {}
        """What each tenant has running; kept only if there is a cap."""
        self._entries: dict[str, Entry] = {}
        """What waits, oldest first but for what has come back."""
        self._back: dict[str, Entry] = {}
        """What waits and has come back."""
        self._orders = itertools.count()
        self._in_flight = 0
        self._left: ClassLine = self._all[0]
        """The class that ran empty last."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def push(self, call: CallDescriptor, *, cost: float, at: float, first: bool = False) -> Entry:
        """Queue a call that is not in the queue, at the end of its flow (`first`: at its head)."""
        flow = self._flow(call.tenant, self._line(call.priority))
        order = -1 if first else next(self._orders)
        entry = Entry(call, flow, cost if cost > LEAST_COST else LEAST_COST, order, at)
        self._wait(entry, returned=first)
        return entry

    def pick(self) -> Entry | None:
        """Take the call that is next and charge its estimate; None if none waits, or none may go."""
        flow = self._next()
        if flow is None:
            return None
        entry = flow.pop()
        del self._entries[entry.id]
        self._waited(entry)
        if flow.load is not None:
            flow.load.in_flight += 1
        self._in_flight += 1
        flow.counter.value += entry.cost
        flow.line.virtual += entry.cost / flow.line.weight
        return entry

    def settle(self, entry: Entry, cost: float | None = None) -> None:
        """A picked call has ended, and took `cost` GPU-milliseconds (None: unknown, the estimate stands)."""
        if cost is not None:
            self._charge(entry, max(cost, LEAST_COST) - entry.cost)
        self._landed(entry)

    def give_back(self, entry: Entry, call: CallDescriptor) -> Entry:
        """A picked call never started: refund it and queue it where it was, as `call` describes it now."""
        self._charge(entry, -entry.cost)
        self._landed(entry)
        flow = self._flow(call.tenant, entry.flow.line)
        again = Entry(call, flow, entry.cost, entry.order, entry.pushed)
        again.since = entry.since
        self._wait(again, returned=True)
        return again

    def remove(self, call: str) -> Entry | None:
        """Take a waiting call out; None if it does not wait here."""
        entry = self._entries.pop(call, None)
        if entry is not None:
            self._waited(entry)
            self._forget(entry.flow)
        return entry

    def close(self) -> None:
        """The version is no more: leave the function's counters. Only an empty queue may be closed."""
        for line in self._all:
            line.counters.part(line)

    def depth(self, tenant: str, priority: str) -> int:
        """Calls that wait in one flow."""
        flow = self._line(priority).flows.get(tenant)
        return flow.live if flow else 0

    def ahead(self, tenant: str, priority: str) -> float:
        """About how many of the waiting calls would be picked before a new one of this flow.

        In its class, each flow advances at the same pace, so no other flow gets more picks than this one needs to
        reach its end, nor more than it has calls; the other classes go along by weight. O(1): flows are not visited.
        """
        line = self._line(priority)
        own = self.depth(tenant, priority)
        in_class = min(line.live, max(1, len(line.flows)) * (own + 1))
        others = (min(o.live, in_class * o.weight / line.weight) for o in self._all if o is not line)
        return in_class + sum(others)

    def oldest(self) -> float | None:
        """The instant from which the call that has waited longest waits; None if none does."""
        firsts = [next(iter(waiting.values())).since for waiting in (self._entries, self._back) if waiting]
        return min(firsts, default=None)

    def statistics(self) -> QueueStatistics:
        """How it is, at once."""
        return QueueStatistics(
            waiting={str(priority): line.live for priority, line in self._lines.items()},
            flows=sum(len(line.flows) for line in self._all),
            in_flight=self._in_flight,
        )

    def check_integrity(self) -> None:
        """Raise AssertionError if the counts do not agree with each other."""
        flows = [flow for line in self._all for flow in line.flows.values()]
        waiting = {entry.id for flow in flows for entry in flow if entry.waiting}
        require(waiting == set(self._entries), "what waits in flows is not what waits")
        require(sum(line.live for line in self._all) == len(self._entries), "classes miscount")
        require(all(f.live == sum(e.waiting for e in f) > 0 for f in flows), "a flow miscounts")
        require(set(self._back) <= set(self._entries), "what came back does not wait")
        flying = sum(load.in_flight for load in self._tenants.values())
        require(self._cap is None or flying == self._in_flight, "tenants miscount")
        require(all(f.parked == math.isnan(f.key) for f in flows), "a flow is neither in the heap nor parked")
        for load in self._tenants.values():
            require(load.in_flight > 0 or load.flows > 0, "an idle tenant is kept")
            require(load.in_flight >= 0, "more calls landed than flew")

    def _line(self, priority: str) -> ClassLine:
        return self._lines.get(priority) or self._lines[Priority.STANDARD]

    def _next(self) -> Flow | None:
        found: Flow | None = None
        for line in self._all:
            if line.live and (found is None or line.virtual < found.line.virtual):
                found = line.head() or found
        return found

    def _flow(self, tenant: str, line: ClassLine) -> Flow:
        flow = line.flows.get(tenant)
        if flow is None:
            load = self._tenants.setdefault(tenant, TenantLoad()) if self._cap is not None else None
            flow = Flow(line, tenant, line.counters.of(tenant), load)
        return flow

    def _wait(self, entry: Entry, *, returned: bool) -> None:
        self._entries[entry.id] = entry
        if returned:
            self._back[entry.id] = entry
            entry.flow.insert(entry)
        else:
            entry.flow.append(entry)
        line = entry.flow.line
        if not line.live:
            self._lift(line)
        line.grow(entry.flow)

    def _waited(self, entry: Entry) -> None:
        entry.waiting = False
        line = entry.flow.line
        line.shrink(entry.flow)
        if not line.live:
            self._left = line
        if self._back:
            self._back.pop(entry.id, None)

    def _lift(self, line: ClassLine) -> None:
        # As for tenants: a class that was idle has not saved anything up.
        active = [other.virtual for other in self._all if other.live] or [self._left.virtual]
        line.virtual = max(line.virtual, min(active))

    def _charge(self, entry: Entry, cost: float) -> None:
        entry.flow.counter.add(cost)
        entry.flow.line.virtual += cost / entry.flow.line.weight

    def _landed(self, entry: Entry) -> None:
        self._in_flight -= 1
        load = entry.flow.load
        if load is not None:
            load.in_flight -= 1
            while load.parked:
                flow = load.parked.pop()
                flow.line.unpark(flow)
            self._forget(entry.flow)

    def _forget(self, flow: Flow) -> None:
        if flow.load is not None and not flow.load.in_flight and not flow.load.flows:
            self._tenants.pop(flow.tenant, None)
