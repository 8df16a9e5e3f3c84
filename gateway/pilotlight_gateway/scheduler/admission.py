"""Whether a call is let into the queue: bounds on the queue, and the deadline test.

A call that cannot make its deadline is refused at once, with the truth about when to come back, rather than left to
time out in the queue. What is not known is not held against a call: without a measured service time or start time it
is admitted. The estimate is Little's law: the calls that go first, over the rate at which slots become free.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch, Unavailable
from pilotlight_core.model.messages import CallDescriptor, ContainerState
from pilotlight_gateway.scheduler.queue import FairQueue
from pilotlight_gateway.scheduler.rooms import Rooms

SMOOTHING = 0.2
"""Weight of the newest observation in a smoothed time: about the last ten calls count."""
UNKNOWN_DRAIN_S = 1.0
"""What Retry-After says of a full queue whose speed is not known yet."""


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """The bounds of a version's queue."""

    per_flow: int = 1_000
    """Calls of one tenant and class."""
    per_version: int = 10_000
    max_age_s: float = 86_400.0
    """A call that has waited this long is dropped, whatever its deadline."""
    tenant_in_flight: int | None = None
    """Calls of one tenant that may be in containers of one version at a time; None: as many as fit."""


class Pace:
    """How long the calls of one version hold their slots, smoothed, and what they cost."""

    __slots__ = ("cost", "hold_ms")

    def __init__(self) -> None:
        self.hold_ms: float | None = None
        """From grant to end."""
        self.cost: float | None = None
        """GPU-milliseconds."""

    def ended(self, hold_ms: float, cost: float | None) -> None:
        """A call has ended."""
        self.hold_ms = _smooth(self.hold_ms, max(0.0, hold_ms))
        if cost is not None:
            self.cost = _smooth(self.cost, cost)


def _smooth(old: float | None, new: float) -> float:
    return new if old is None else old + SMOOTHING * (new - old)


def wait_ms(ahead: float, rooms: Rooms, pace: Pace, at: float) -> float | None:
    """How long a call with `ahead` calls before it will wait; None if that is not known."""
    if ahead < rooms.free:
        return 0.0
    if rooms.slots:
        return (ahead - rooms.free + 1) * pace.hold_ms / rooms.slots if pace.hold_ms is not None else None
    if rooms.start_ms is None or rooms.has(ContainerState.READY):
        return None
    since = rooms.starting_since()
    return max(0.0, rooms.start_ms - (at - since) * 1000.0 if since is not None else rooms.start_ms)


def admit(call: CallDescriptor, queue: FairQueue, rooms: Rooms, pace: Pace, limits: QueueLimits, at: float) -> None:
    """Return if the call may be queued.

    Raises:
        TooMuch: the queue is full, or longer than the call has time for; `retry_after` is when it will have drained.
        Unavailable: the container that must be started takes longer than the call has time for.
        DeadlineExceeded: it has no time left at all.
    """
    if call.remaining_ms <= 0:
        raise DeadlineExceeded("The deadline had passed before the call was queued.")
    if not queue and rooms.free:
        return
    ahead = queue.ahead(call.tenant, call.priority)
    wait = wait_ms(ahead, rooms, pace, at)
    drain = wait / 1000.0 if wait is not None else UNKNOWN_DRAIN_S
    if len(queue) >= limits.per_version or queue.depth(call.tenant, call.priority) >= limits.per_flow:
        raise TooMuch(f"{len(queue)} calls wait for this function.", code="queue_full", retry_after=drain)
    if wait is None or wait <= call.remaining_ms:
        return
    left = f"and the call has {call.remaining_ms / 1000.0:.1f} s."
    if rooms.slots:
        raise TooMuch(f"Its turn would come in {drain:.1f} s, {left}", code="queue_full", retry_after=drain)
    raise Unavailable(f"Its container will be ready in {drain:.1f} s, {left}", retry_after=drain)
