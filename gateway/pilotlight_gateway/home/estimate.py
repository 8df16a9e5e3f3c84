"""How long a call will wait: what is picked before it, over the rate at which slots become free.

The queue picks by counters (`queue.py`), so how many calls go first can be read off them. A call that comes as the
n-th of its flow is picked when the flow's counter stands at

    tag = counter + n x cost / weight

and until then each other flow of its class is picked as long as its own counter is below that; the same holds one
level up for the classes. So a flood of one tenant is not ahead of another's first call, but is ahead of its own next
one. By Little's law the calls that go first take `calls x hold / slots`, where `hold` is how long a call keeps its
slot.
"""

from __future__ import annotations

from itertools import islice

from pilotlight_core.model.messages.agent_messages import CallDescriptor, ContainerState
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.counters import Counter
from pilotlight_gateway.home.queue import LEAST_COST, LEAST_WEIGHT, FairQueue
from pilotlight_gateway.home.tier_queue import ClassQueue, TierQueue

SMOOTHING = 0.05
"""Weight of the newest observation in a smoothed time: about the last twenty calls count."""
LOOKED_AT = 32
"""Flows of a line that are looked at one by one; of more, as many stand for all."""


class ServiceTime:
    """How long the calls of one version hold their slots, smoothed, and what they cost."""

    __slots__ = ("calls", "cost", "hold_ms", "spread_ms")

    def __init__(self) -> None:
        self.calls = 0
        self.hold_ms: float | None = None
        """From grant to end."""
        self.spread_ms = 0.0
        """By how much the hold of a call differs from that, on average."""
        self.cost: float | None = None
        """GPU-milliseconds."""

    def ended(self, hold_ms: float, cost: float | None) -> None:
        """A call has ended."""
        self.calls += 1
        hold_ms = max(0.0, hold_ms)
        # The first few count alike, so that the very first does not stand for all for long.
        newest = max(SMOOTHING, 1.0 / self.calls)
        # `model.ewma` in place: to call it three times took 0.8 µs of each call, as long as all the rest of this.
        if self.hold_ms is None:
            self.hold_ms = hold_ms
        else:
            self.spread_ms += newest * (abs(hold_ms - self.hold_ms) - self.spread_ms)
            self.hold_ms += newest * (hold_ms - self.hold_ms)
        if cost is not None:
            cost = max(cost, LEAST_COST)
            self.cost = cost if self.cost is None else self.cost + newest * (cost - self.cost)

    @property
    def service_ms(self) -> float:
        """What a call should have left when it starts; 0 if nothing is known."""
        return self.hold_ms + self.spread_ms if self.hold_ms is not None else 0.0

    @property
    def least_ms(self) -> float:
        """What a call takes at least, as far as is known: one with less time left would hold a slot for nothing."""
        return max(self.hold_ms / 2.0, self.hold_ms - 2.0 * self.spread_ms) if self.hold_ms is not None else 0.0


def calls_ahead(queue: FairQueue, call: CallDescriptor, usual: float | None = None) -> float:
    """About how many calls would be picked before `call` if it came now, in calls of the usual cost (GPU-ms)."""
    of = queue.of_class(call.priority)
    flow = queue.flow(call.tenant, call.priority)
    counter = flow.counter if flow is not None else of.counters.known(call.tenant)
    cost = max(call.cost or (counter.mean if counter is not None else 0.0) or usual or 0.0, LEAST_COST)
    if flow is not None:
        value = flow.counter.value
    else:
        value = max(of.counters.floor(), counter.value if counter is not None else 0.0)
    own = flow.live if flow is not None else 0
    tag = value + own * cost / max(call.weight, LEAST_WEIGHT)
    return calls_before_class(queue, of, tag, usual, tenant=call.tenant, own=own * _relative(counter, usual))


def calls_before_class(
    queue: FairQueue, of: ClassQueue, tag: float, usual: float | None, *, tenant: str = "", own: float = 0.0
) -> float:
    """About how many calls are picked before one of class `of` whose turn is at counter `tag`: `own` of its own
    tenant, which is not looked at, and those of all others, in calls of the usual cost."""
    in_class = own + sum(_of_line(line, tag, usual, tenant) for line in of.lines)
    cost = max(usual or LEAST_COST, LEAST_COST)
    virtual = of.virtual if of.live else max(of.virtual, min((q.virtual for q in queue.classes if q.live), default=0.0))
    level = virtual + in_class * cost / of.weight
    others = 0.0
    for other in queue.classes:
        if other is not of and other.live and other.virtual <= level:
            others += min(other.live, int((level - other.virtual) * other.weight / cost) + 1)
    return in_class + others


def _of_line(line: TierQueue, tag: float, usual: float | None, tenant: str) -> float:
    found = 0.0
    for flow in islice(line.flows.values(), LOOKED_AT):
        counter = flow.counter
        if counter.value <= tag and flow.tenant != tenant:
            cost = max(flow.cost, LEAST_COST)
            calls = min(flow.live, int((tag - counter.value) * counter.weight / cost) + 1)
            found += calls * _relative(counter, usual)
    return found * max(1.0, len(line.flows) / LOOKED_AT)


def _relative(counter: Counter | None, usual: float | None) -> float:
    """How long the calls of a tenant take, in usual ones; as far as is known, they cost as much as they take."""
    return counter.mean / usual if counter is not None and counter.mean and usual else 1.0


def wait_ms(calls: float, rooms: ContainerPool, pace: ServiceTime, at: float, *, kept: int = 0) -> float | None:
    """How long a call with `calls` calls before it will wait; None if that is not known.

    `kept` slots are not for it. What is being started counts from when it should be ready; if nobody knows when that
    is, nobody knows the wait.
    """
    if calls < rooms.free - kept:
        return 0.0
    slots = max(rooms.capacity - kept, min(1, rooms.capacity))
    missing = calls - max(0, rooms.free - kept) + 1
    if not slots:
        return _wait_for_start(missing, rooms, pace, at)
    if pace.hold_ms is None:
        return None
    hold = max(pace.hold_ms, 1e-3)
    waited = 0.0
    for ready_ms, more in rooms.starting(at):
        if ready_ms is None:
            return None
        served = (ready_ms - waited) * slots / hold
        if served >= missing:
            break
        missing -= served
        waited = ready_ms
        if more >= missing:
            return waited
        missing -= more
        slots += more
    return waited + missing * hold / slots


def _wait_for_start(missing: float, rooms: ContainerPool, pace: ServiceTime, at: float) -> float | None:
    if rooms.start_ms is None or rooms.has(ContainerState.READY):
        return None
    starting = rooms.starting(at)
    if not starting:
        return rooms.start_ms
    ready_ms = starting[0][0]
    slots = sum(more for _, more in starting)
    # A container whose start has just begun does not say yet how many calls it will take.
    if ready_ms is None or pace.hold_ms is None or missing <= slots or not slots:
        return ready_ms
    return ready_ms + (missing - slots) * pace.hold_ms / slots
