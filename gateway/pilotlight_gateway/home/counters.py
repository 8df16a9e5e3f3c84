"""Virtual counters: how much service each tenant has had of one function, class by class.

Theory of operation
-------------------
The Virtual Token Counter (Sheng et al., "Fairness in Serving Large Language Models", OSDI'24, arXiv 2401.00588) is
start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM'96) for work whose cost is only known afterwards. Each tenant has
a counter of the service it received, here in GPU-milliseconds; the backlogged tenant with the smallest is served
next. A pick is charged at an estimate and corrected when the call ends. For two tenants that stay backlogged, the
service they receive differs by a bounded amount that does not grow with time, however unequal their demand.

    charge    pick:     value += estimate
    correct   running:  value += cost so far - estimate   (only where it is more)
              end:      value += actual - estimate        (may lower it)
    refund    returned: value -= estimate                 (it never ran)
    lift      idle -> active: value = max(value, the smallest value of the active)

Each cost is divided by the tenant's weight, so that a tenant of weight 4 gets four times the service of one of
weight 1 before its counter has risen as far.

Without the lift, a tenant could sleep, save up "unused" service, and then shut everybody else out. If nobody is
active, the floor is the counter of whoever left last. The counters belong to the *function*: a tenant does not get a
second share by calling its two versions. Each version has its own queue over them, and a flow's place in a queue's
heap is only a lower bound that is corrected when it comes up (`flows.py`), so a charge costs nothing elsewhere;
only a correction downwards must be told to the queues at once.
"""

from __future__ import annotations

from typing import Protocol

from pilotlight_core.model.spec import Priority

KEPT = 1024
"""Counters of idle tenants that are kept without looking whether they still mean something."""
LEARNT = 0.1
"""Weight of the newest call in what a tenant's calls cost."""


class Backlog(Protocol):
    """What a counter must know of a flow that waits under it: that its value went down."""

    def lowered(self) -> None: ...


class Heads(Protocol):
    """What the counters must know of a queue: the smallest value that waits in it; None when nothing does."""

    def least(self) -> float | None: ...


class Counter:
    """The service that one tenant had over its weight, and its backlogged flows: one per version (and tier)."""

    __slots__ = ("backlog", "mean", "value", "weight")

    def __init__(self) -> None:
        self.value = 0.0
        self.weight = 1.0
        """The tenant's share among those that compete, as its last call said."""
        self.mean = 0.0
        """What its calls cost, smoothed over about the last ten; 0: not known yet."""
        self.backlog: list[Backlog] = []

    def add(self, cost: float) -> None:
        """Charge (or, negative, give back) `cost` GPU-milliseconds over the tenant's weight."""
        self.value += cost
        if cost < 0:
            for flow in self.backlog:
                flow.lowered()


class Counters:
    """The counters of one class of one function."""

    def __init__(self) -> None:
        self._of: dict[str, Counter] = {}
        self._queues: list[Heads] = []
        self._left = Counter()
        """Who became idle last: the floor while nobody is active."""
        self._sweep_at = KEPT

    def __len__(self) -> int:
        return len(self._of)

    def join(self, queue: Heads) -> None:
        """A version's queue takes part."""
        self._queues.append(queue)

    def part(self, queue: Heads) -> None:
        """A version's queue is no more."""
        self._queues.remove(queue)

    def of(self, tenant: str) -> Counter:
        """The tenant's counter, made on first use."""
        counter = self._of.get(tenant)
        if counter is None:
            if len(self._of) >= self._sweep_at:
                self._sweep()
            counter = self._of[tenant] = Counter()
        return counter

    def known(self, tenant: str) -> Counter | None:
        """The tenant's counter, if it has one."""
        return self._of.get(tenant)

    def values(self) -> dict[str, float]:
        """The service of every tenant that is known, to be restored elsewhere."""
        return {tenant: counter.value for tenant, counter in self._of.items()}

    def restore(self, values: dict[str, float]) -> None:
        """Go on from another's `values`; nothing waits here yet."""
        for tenant, value in values.items():
            self.of(tenant).value = value

    def activate(self, counter: Counter, flow: Backlog) -> None:
        """A flow of this counter has become backlogged: lift it."""
        if not counter.backlog:
            counter.value = max(counter.value, self.floor())
        counter.backlog.append(flow)

    def deactivate(self, counter: Counter, flow: Backlog) -> None:
        """A flow of this counter has no more calls waiting."""
        counter.backlog.remove(flow)
        self._left = counter

    def floor(self) -> float:
        """The least service among the active tenants; of the one that left last when there are none."""
        least = [value for queue in self._queues if (value := queue.least()) is not None]
        return min(least) if least else self._left.value

    def _sweep(self) -> None:
        # An idle tenant at or below the floor would be lifted to it anyway: its counter says nothing.
        floor = self.floor()
        self._of = {name: c for name, c in self._of.items() if c.backlog or c.value > floor}
        self._sweep_at = max(KEPT, 2 * len(self._of))


class FunctionCounters:
    """All counters of one function: what its versions share."""

    def __init__(self) -> None:
        self.classes: dict[Priority, Counters] = {priority: Counters() for priority in Priority}
