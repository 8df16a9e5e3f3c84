"""Admission: how long a call would wait, and whether it may enter the queue.

The order in which the queue picks follows from its counters (`tier_queue`). The n-th call of a flow is picked when the
counter of the flow stands at

    tag = counter + n x cost / weight

and until then every other flow of its class is picked while its counter is below that value. The same holds one level
up for the classes. So a flood of one tenant delays that tenant's next call, but not the first call of another. By
Little's law the calls ahead take `calls x hold / slots`.

A call that cannot meet its deadline is refused at once with a Retry-After, rather than left to time out:

    wait x (1 + MARGIN) + service <= time left

A call for which a slot is free beside those of the calls that wait always enters. What is unknown is no reason to
refuse: without a measured service or start time a call enters, and containers that are starting count from the instant
at which they should be ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch, Unavailable
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.call_messages import CallDescriptor
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.units import duration_text
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.queue import LEAST_COST, LEAST_WEIGHT, FairQueue
from pilotlight_gateway.home.tier_queue import ClassQueue, Counter, TierQueue

SMOOTHING = 0.05
"""Weight of the newest value in a smoothed time: about the last twenty calls count."""
SAMPLED_FLOWS = 32
"""Flows of a tier that are counted one by one; if there are more, these stand for all."""
UNKNOWN_DRAIN_S = 1.0
"""Retry-After of a full queue whose speed is unknown."""
MARGIN = 0.15
"""Part by which the estimated wait may be wrong. In a long queue it costs no throughput: the next call takes the place
of a refused one."""


class ServiceTime:
    """How long the calls of one version hold their slots, and what they cost, smoothed."""

    __slots__ = ("calls", "cost", "hold_ms", "spread_ms")

    def __init__(self) -> None:
        self.calls = 0
        self.hold_ms: float | None = None
        self.spread_ms = 0.0
        self.cost: float | None = None

    def begin_as(self, other: ServiceTime | None) -> None:
        """Take for a guess what the version before this one took; the first call of its own replaces it."""
        if other is not None and not self.calls:
            self.hold_ms, self.spread_ms, self.cost = other.hold_ms, other.spread_ms, other.cost

    def ended(self, hold_ms: float, cost: float | None) -> None:
        self.calls += 1
        hold_ms = max(0.0, hold_ms)
        # The first few count alike, so that the very first does not dominate for long.
        newest = max(SMOOTHING, 1.0 / self.calls)
        # `model.ewma` in place: three calls of it took 0.8 µs, as long as the rest of this method.
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
        """The time that a call should have left when it starts; 0 if unknown."""
        return self.hold_ms + self.spread_ms if self.hold_ms is not None else 0.0

    @property
    def least_ms(self) -> float:
        """The least time that a call takes; with less left it would hold a slot for nothing."""
        return max(self.hold_ms / 2.0, self.hold_ms - 2.0 * self.spread_ms) if self.hold_ms is not None else 0.0


def calls_ahead(queue: FairQueue, call: CallDescriptor, usual: float | None = None) -> float:
    """About how many calls would be picked before `call`, in calls of the `usual` cost (GPU-milliseconds)."""
    class_queue = queue.of_class(call.priority)
    flow = queue.flow(call.tenant, call.priority)
    counter = flow.counter if flow is not None else class_queue.counters.known(call.tenant)
    cost = max(call.cost or (counter.mean if counter is not None else 0.0) or usual or 0.0, LEAST_COST)
    if flow is not None:
        value = flow.counter.value
    else:
        value = max(class_queue.counters.floor(), counter.value if counter is not None else 0.0)
    own = flow.live if flow is not None else 0
    tag = value + own * cost / max(call.weight, LEAST_WEIGHT)
    return calls_before_class(queue, class_queue, tag, usual, tenant=call.tenant, own=own * _relative(counter, usual))


def calls_before_class(
    queue: FairQueue, class_queue: ClassQueue, tag: float, usual: float | None, *, tenant: str = "", own: float = 0.0
) -> float:
    """About how many calls are picked before the counter of a class reaches `tag`, in calls of the usual cost.

    `own` calls are those of `tenant`, whose flow is skipped here.
    """
    in_class = own + sum(_of_tier(tier_queue, tag, usual, tenant) for tier_queue in class_queue.tier_queues)
    cost = max(usual or LEAST_COST, LEAST_COST)
    virtual = (
        class_queue.virtual
        if class_queue.live
        else max(class_queue.virtual, min((q.virtual for q in queue.classes if q.live), default=0.0))
    )
    level = virtual + in_class * cost / class_queue.weight
    others = 0.0
    for other in queue.classes:
        if other is not class_queue and other.live and other.virtual <= level:
            others += min(other.live, int((level - other.virtual) * other.weight / cost) + 1)
    return in_class + others


def _of_tier(tier_queue: TierQueue, tag: float, usual: float | None, tenant: str) -> float:
    found = 0.0
    for flow in islice(tier_queue.flows.values(), SAMPLED_FLOWS):
        counter = flow.counter
        if counter.value <= tag and flow.tenant != tenant:
            cost = max(flow.cost, LEAST_COST)
            calls = min(flow.live, int((tag - counter.value) * counter.weight / cost) + 1)
            found += calls * _relative(counter, usual)
    return found * max(1.0, len(tier_queue.flows) / SAMPLED_FLOWS)


def _relative(counter: Counter | None, usual: float | None) -> float:
    """Duration of a tenant's calls in usual ones, assuming that duration is proportional to cost."""
    return counter.mean / usual if counter is not None and counter.mean and usual else 1.0


def wait_ms(calls: float, pool: ContainerPool, service_time: ServiceTime, at: float, *, kept: int = 0) -> float | None:
    """The wait behind `calls` calls; None if unknown.

    `kept` slots are not for this call. Starting containers count from when they should be ready; if that is unknown, so
    is the wait.
    """
    if calls < pool.free - kept:
        return 0.0
    slots = max(pool.capacity - kept, min(1, pool.capacity))
    missing = calls - max(0, pool.free - kept) + 1
    if not slots:
        return _wait_for_start(missing, pool, service_time, at)
    if service_time.hold_ms is None:
        return None
    hold = max(service_time.hold_ms, 1e-3)
    waited = 0.0
    for ready_ms, more in pool.starting(at):
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


def _wait_for_start(missing: float, pool: ContainerPool, service_time: ServiceTime, at: float) -> float | None:
    # One that is parked serves within milliseconds: much sooner than another would have started.
    if pool.start_ms is None or pool.has(ContainerState.READY, ContainerState.PARKED):
        return None
    starting = pool.starting(at)
    if not starting:
        return pool.start_ms
    ready_ms = starting[0][0]
    slots = sum(more for _, more in starting)
    # A container that has just begun to start does not report its slots yet.
    if ready_ms is None or service_time.hold_ms is None or missing <= slots or not slots:
        return ready_ms
    return ready_ms + (missing - slots) * service_time.hold_ms / slots


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """Bounds of a version's queue; a call's descriptor may set narrower ones."""

    per_flow: int = 1_000
    """Calls of one tenant and class."""
    per_version: int = 10_000
    max_age_s: float = 86_400.0
    """A call that has waited for this long is dropped, whatever its deadline."""

    def age_s(self, call: CallDescriptor) -> float:
        """How long a call may wait in all."""
        return min(call.queue_ms / 1000.0, self.max_age_s) if call.queue_ms else self.max_age_s

    def waiting(self, call: CallDescriptor) -> int:
        return call.queue_calls or self.per_flow


def expected_ms(
    call: CallDescriptor, queue: FairQueue, pool: ContainerPool, service_time: ServiceTime, at: float
) -> float | None:
    """The wait of a call that arrives now; None if unknown."""
    kept = queue.kept_from(call, pool.slots, pool.spare, at)
    return wait_ms(calls_ahead(queue, call, service_time.cost), pool, service_time, at, kept=kept)


def admit(
    call: CallDescriptor,
    queue: FairQueue,
    pool: ContainerPool,
    service_time: ServiceTime,
    limits: QueueLimits,
    at: float,
) -> None:
    """Return if the call may be queued.

    Raises:
        TooMuch: the queue is full, or its wait too long for the call; `retry_after` is that wait.
        Unavailable: the container that has to start takes too long for the call. It is demand for one nevertheless.
        DeadlineExceeded: the deadline has passed.
    """
    if call.remaining_ms <= 0:
        raise DeadlineExceeded("The deadline had passed before the call was queued.")
    # Those that came in this turn stand in the queue until its end: one that finds a slot beside theirs waits for none.
    if pool.free - queue.kept_from(call, pool.slots, pool.spare, at) > len(queue):
        return
    wait = expected_ms(call, queue, pool, service_time, at)
    drain = wait / 1000.0 if wait is not None else UNKNOWN_DRAIN_S
    if (depth := queue.depth(call.tenant, call.priority)) >= (most := limits.waiting(call)):
        raise _too_many(call, depth, most, drain)
    if len(queue) >= limits.per_version:
        # How many wait would reveal other tenants: it is not in the error.
        raise TooMuch("As many calls wait for this function as may.", code="queue_full", retry_after=drain)
    if wait is None or not wait:
        return
    age = limits.age_s(call)
    if drain + call.age_ms / 1000.0 > age:
        detail = f"Its turn would come in {drain:.1f} s, and calls may wait {age:.1f} s."
        reached = [_reached(call, "queue_seconds", age, drain)] if call.queue_ms else []
        raise TooMuch(detail, code="queue_full", retry_after=drain, limits=reached)
    if wait * (1.0 + MARGIN) + service_time.service_ms <= call.remaining_ms:
        return
    takes = f", its calls take {duration_text(service_time.service_ms / 1000.0)}" if service_time.service_ms else ""
    left = f"{takes}, and the call has {duration_text(call.remaining_ms / 1000.0)}."
    if pool.capacity:
        raise TooMuch(f"Its turn would come in {duration_text(drain)}{left}", code="queue_full", retry_after=drain)
    raise Unavailable(f"A container would be ready in {duration_text(drain)}{left}", retry_after=drain)


def _too_many(call: CallDescriptor, depth: int, most: int, drain: float) -> TooMuch:
    whose = f"{call.tenant} may have {most} {call.priority} calls waiting for {call.function or 'this function'}"
    reached = _reached(call, "queue_calls", most, depth)
    return TooMuch(f"{whose}, and {depth} do.", code="queue_full", retry_after=drain, limits=[reached])


def _reached(call: CallDescriptor, limit: str, allowed: float, current: float) -> ReachedLimit:
    function = call.function or None
    return ReachedLimit(limit=limit, tenant=call.tenant, function=function, allowed=allowed, current=current)
