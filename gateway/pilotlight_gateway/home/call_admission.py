"""Whether a call is let into the queue: bounds on the queue, and the deadline test.

A call that cannot make its deadline is refused at once, with the truth about when to come back, rather than left to
time out in the queue. What is not known is not held against a call: without a measured service time or start time it
is admitted, and while containers are being started they count from when they should be ready.

The test is `wait x (1 + MARGIN) + service <= time left`: who starts with less than the time of one call left would hold
a slot for nothing. A call for which a slot is free is never refused by it: its own time is not known better than that.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch, Unavailable
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.agent_messages import CallDescriptor
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.estimate import ServiceTime, calls_ahead, wait_ms
from pilotlight_gateway.home.queue import FairQueue

UNKNOWN_DRAIN_S = 1.0
"""What Retry-After says of a full queue whose speed is not known yet."""
MARGIN = 0.15
"""Part of the estimated wait by which it may be wrong. In a queue that is full for long it costs nothing: what is
refused for it is taken by the next call."""


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """The bounds of a version's queue, where a call's own descriptor does not set narrower ones."""

    per_flow: int = 1_000
    """Calls of one tenant and class."""
    per_version: int = 10_000
    max_age_s: float = 86_400.0
    """A call that has waited this long is dropped, whatever its deadline."""
    tenant_in_flight: int | None = None
    """Calls of one tenant that may be in containers of one version at a time; None: as many as fit."""

    def age_s(self, call: CallDescriptor) -> float:
        """How long a call may wait in all."""
        return min(call.queue_ms / 1000.0, self.max_age_s) if call.queue_ms else self.max_age_s

    def waiting(self, call: CallDescriptor) -> int:
        """How many calls of its flow may wait."""
        return call.queue_calls or self.per_flow


def expected_ms(
    call: CallDescriptor, queue: FairQueue, rooms: ContainerPool, pace: ServiceTime, at: float
) -> float | None:
    """How long the call would wait if it came now; None if that is not known."""
    kept = queue.kept(call.tier_rank, rooms.slots, at)
    return wait_ms(calls_ahead(queue, call, pace.cost), rooms, pace, at, kept=kept)


def admit(
    call: CallDescriptor, queue: FairQueue, rooms: ContainerPool, pace: ServiceTime, limits: QueueLimits, at: float
) -> None:
    """Return if the call may be queued.

    Raises:
        TooMuch: the queue is full, or longer than the call has time for; `retry_after` is how long it would have
            waited.
        Unavailable: the container that must be started takes longer than the call has time for.
        DeadlineExceeded: it has no time left at all.
    """
    if call.remaining_ms <= 0:
        raise DeadlineExceeded("The deadline had passed before the call was queued.")
    if not queue and rooms.free > queue.kept(call.tier_rank, rooms.slots, at):
        return
    wait = expected_ms(call, queue, rooms, pace, at)
    drain = wait / 1000.0 if wait is not None else UNKNOWN_DRAIN_S
    if (depth := queue.depth(call.tenant, call.priority)) >= (most := limits.waiting(call)):
        raise _too_many(call, depth, most, drain)
    if len(queue) >= limits.per_version:
        # How many wait is the other tenants' concern: it is not told.
        raise TooMuch("As many calls wait for this function as may.", code="queue_full", retry_after=drain)
    if wait is None or not wait:
        return
    age = limits.age_s(call)
    if drain + call.age_ms / 1000.0 > age:
        detail = f"Its turn would come in {drain:.1f} s, and calls may wait {age:.1f} s."
        reached = [_reached(call, "queue_seconds", age, drain)] if call.queue_ms else []
        raise TooMuch(detail, code="queue_full", retry_after=drain, limits=reached)
    if fits(wait, pace, call.remaining_ms):
        return
    left = f"and the call has {call.remaining_ms / 1000.0:.1f} s."
    if rooms.capacity:
        raise TooMuch(f"Its turn would come in {drain:.1f} s, {left}", code="queue_full", retry_after=drain)
    raise Unavailable(f"Its container will be ready in {drain:.1f} s, {left}", retry_after=drain)


def _too_many(call: CallDescriptor, depth: int, most: int, drain: float) -> TooMuch:
    whose = f"{call.tenant} may have {most} {call.priority} calls waiting for {call.function or 'this function'}"
    reached = _reached(call, "queue_calls", most, depth)
    return TooMuch(f"{whose}, and {depth} do.", code="queue_full", retry_after=drain, limits=[reached])


def _reached(call: CallDescriptor, limit: str, allowed: float, current: float) -> ReachedLimit:
    function = call.function or None
    return ReachedLimit(limit=limit, tenant=call.tenant, function=function, allowed=allowed, current=current)


def fits(wait: float, pace: ServiceTime, left_ms: float, margin: float = MARGIN) -> bool:
    """Whether a call that waits `wait` ms can be done within `left_ms`."""
    return wait * (1.0 + margin) + pace.service_ms <= left_ms
