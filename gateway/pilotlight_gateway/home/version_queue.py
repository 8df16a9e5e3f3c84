"""What a home keeps of one version: waiting calls, container pool, service time, and breakers."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.errors import DeadlineExceeded, TooMuch, Unavailable
from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant, Outcome, is_misconfigured
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import ContainerState, Credit, Shortage
from pilotlight_core.model.units import duration_text
from pilotlight_gateway.home.breakers import ContainerVerdict, LossAttribution, verdict
from pilotlight_gateway.home.call_admission import QueueLimits, ServiceTime, admit, expected_ms
from pilotlight_gateway.home.container_pool import STARTING, ContainerPool, PooledContainer
from pilotlight_gateway.home.queue import FairQueue
from pilotlight_gateway.home.shedding import shed
from pilotlight_gateway.home.slowdown import ALERT, Slowdowns, SlowFlow
from pilotlight_gateway.home.start_failures import StartFailure, start_failure
from pilotlight_gateway.home.tier_queue import FunctionCounters, QueueEntry

KEEP_IDLE_S = 3_600.0
"""How long the state of an unused version (start time, cost) is kept."""
SHORTAGE_S = 5.0
"""A shortage that is not repeated for this long has passed."""
NEVER_FITS_S = 10.0
"""A version must fit nowhere for this long before its calls are refused: a node may be restarting."""
SHUT_DOWN_S = 1.0
"""The same for one that is shut down: the controller may not have read yet that it was deployed again."""
BACK_WITHIN_S, BACK_AT_MOST_S = 5.0, 60.0
"""Whoever was told when to come again has so long, beyond that instant, before others may have the place."""
GRACE_S = 0.5
"""Lost capacity may be replaced for this long before calls are shed; a start from a blank takes less."""
SCAN_EVERY_S = 1.0
CHARGE_EVERY_S = 1.0
DECLINED_MS = 5.0
"""A grant that ends sooner, with no known cost or outcome, was declined by its origin: nothing ran."""


class VersionQueue:
    """One version at its home."""

    __slots__ = (
        "_capacity",
        "_limits",
        "_scan_at",
        "arrivals",
        "back_until",
        "calls",
        "function",
        "late",
        "load_errors",
        "losses",
        "never_since",
        "pool",
        "refused_at",
        "refused_calls",
        "reported_at",
        "reported_busy",
        "reported_waiting",
        "room_at",
        "service_time",
        "shortage",
        "shortage_at",
        "slowdowns",
        "tenant",
        "used_at",
        "version",
    )  # fmt: skip

    def __init__(self, version: str, limits: QueueLimits, epoch: int, at: float) -> None:
        self.version = version
        self.function = ""
        """Empty until a call or a restored state names it."""
        self._limits = limits
        self.tenant = ""
        self.calls = FairQueue(FunctionCounters())
        self.pool = ContainerPool(epoch)
        self.service_time = ServiceTime()
        self.slowdowns = Slowdowns()
        self.losses = LossAttribution()
        self._capacity = 0
        self._scan_at = at
        self.arrivals = self.refused_calls = self.late = 0
        """Since the last demand; see `Demand`."""
        self.reported_at = float("-inf")
        self.reported_waiting = 0
        self.refused_at: float | None = None
        """When a call was last refused for lack of a container; None once there is one."""
        self.reported_busy = False
        """Whether the last demand said that calls want room or run."""
        self.used_at = at
        self.load_errors = 0
        """Containers that failed to load since one was ready."""
        self.shortage = ""
        self.shortage_at = float("-inf")
        self.never_since: float | None = None
        self.room_at = float("-inf")
        """When the controller expects a place for a first container; in the past: it does not know."""
        self.back_until: float | None = None
        """Calls were told to come again when there is a place: until then one is wanted, and kept for them."""

    def set_function(self, function: str, counters: FunctionCounters) -> None:
        """Set the function and share its counters. Nothing may be queued or granted yet."""
        self.calls.close()
        self.function = function
        self.tenant = self.tenant or function.partition(":")[0]
        self.calls = FairQueue(counters)

    @property
    def edge(self) -> bool:
        """Whether calls want room that no demand has reported."""
        wants = bool(self.calls) or self.refused_at is not None
        return wants and not self.reported_waiting

    @property
    def busy(self) -> bool:
        """Whether another demand is due."""
        refused = self.refused_at is not None or self.back_until is not None
        wants = bool(self.calls) or bool(self.arrivals) or refused
        return self.reported_busy or wants

    def admit(self, call: CallDescriptor, at: float) -> None:
        """Let a call in, or refuse it. However many are refused for lack of a container, they want one.

        Raises:
            TooMuch: the queue is full.
            Unavailable: it could not be done in time, or a breaker is open, in which case it wants none.
            DeadlineExceeded: its time is over already.
        """
        try:
            if (without_room := self.why_without_room(at, call.remaining_ms / 1000.0)) is not None:
                self.expect_back(at)
                raise without_room
            admit(call, self.calls, self.pool, self.service_time, self._limits, at)
        except Unavailable:
            self.losses.admit(call.call_id, call.tenant, at)
            self.losses.withdrawn(call.call_id, call.tenant, at)
            self.refused_at = at
            self.refused_calls += 1
            raise
        except TooMuch:
            self.refused_calls += 1
            raise
        except DeadlineExceeded:
            self.late += 1
            raise
        self.losses.admit(call.call_id, call.tenant, at)

    def reported(self, demand: Demand, at: float) -> None:
        """A demand is told: the next one counts anew."""
        self.reported_at, self.reported_waiting = at, demand.waiting
        self.arrivals = self.refused_calls = self.late = 0
        self.reported_busy = bool(demand.waiting or demand.running)
        if demand.waiting or demand.running or demand.arrivals:
            self.used_at = at

    def excess(self, at: float) -> list[tuple[QueueEntry, float]]:
        """Update the pool, and return the calls to shed with the wait (ms) of each.

        Lost containers have GRACE_S to be replaced; the quarantine of a silent one is grace enough.
        """
        self.resized(at)
        self.pool.quarantine(at)
        self.pool.probe(at)
        if self.pool.capacity < self._capacity:
            self._scan_at = at
        self._capacity = self.pool.capacity
        if at < self._scan_at or self.pool.deposed:
            return []  # what is lost to this home, a newer one has
        self._scan_at = at + SCAN_EVERY_S
        return shed(self.calls, self.pool, self.service_time, at)

    def why_out_of_time(self, entry: QueueEntry, at: float) -> tuple[str, str, float | None]:
        """Code, detail and Retry-After of a call whose time in the queue is over."""
        waited, age = at - entry.since, self._limits.age_s(entry.call)
        if entry.call.queue_ms and waited >= age:
            wait = expected_ms(entry.call, self.calls, self.pool, self.service_time, at)
            detail = f"It waited {waited:.1f} s, and calls may wait {age:.1f} s."
            return "queue_full", detail, wait / 1000.0 if wait is not None else None
        why = self.shortage_now(at)
        return "deadline_exceeded", f"It waited {waited:.1f} s for a container{': ' if why else ''}{why}.", None

    def why_too_late(self, entry: QueueEntry, leaves_at: float, at: float) -> tuple[str, str]:
        waited, left, takes = at - entry.since, max(0.0, leaves_at - at), (self.service_time.hold_ms or 0.0) / 1000.0
        detail = f"It waited {waited:.1f} s, {left:.1f} s are left, and its calls take {takes:.1f} s."
        return "deadline_exceeded", detail

    def resized(self, at: float) -> None:
        """Capacity may have changed: if it fell, delay the next check for shedding by GRACE_S."""
        if self.pool.capacity:
            self.refused_at = None
        if self.pool.capacity < self._capacity:
            self._scan_at = at + GRACE_S
        self._capacity = self.pool.capacity

    def ended(
        self,
        entry: QueueEntry,
        others: Mapping[str, QueueEntry],
        at: float,
        cost: float | None,
        outcome: Outcome | None,
    ) -> list[str]:
        """Learn from the end of a call that has freed its slot; returns as `LossAttribution.lost`.

        `others` are the calls whose grants have not ended.
        """
        hold = (at - entry.granted_at) * 1000.0
        if cost is None and outcome is None and hold < DECLINED_MS:
            return []
        grant, pool = entry.grant, self.pool
        found, tenant = verdict(outcome, hold, self.service_time.hold_ms), entry.call.tenant
        pool.ended(grant.container, entry.call_id, tenant, found, at)
        self.service_time.ended(hold, cost)
        self.slowdowns.ended(entry.call, entry.since, grant.start_ms, hold / 1000.0, pool.capacity, at)
        if found is not ContainerVerdict.LOST:
            self.losses.answered(found, tenant)
            return []
        if self.losses.is_counted(grant.container):
            return []
        held = {tenant}
        if outcome is not Outcome.TIMEOUT:
            held.update(one.call.tenant for one in others.values() if one.grant.container == grant.container)
        return self.losses.lost(grant.container, held, "", at)

    def charge_running(self, container: str, granted: Mapping[str, QueueEntry], at: float) -> None:
        """Charge the calls in a container for their cost so far, where that exceeds the estimate.

        The agent meters a call only at its end, so the cost is taken to be proportional to the time in the slot.
        """
        pooled = self.pool.get(container)
        if pooled is None or at - pooled.charged_at < CHARGE_EVERY_S:
            return
        pooled.charged_at = at
        known = self.service_time.cost is not None and self.service_time.hold_ms
        rate = (
            (self.service_time.cost or 0.0) / (self.service_time.hold_ms or 1.0)
            if known
            else 1.0 / max(1, len(pooled.held))
        )
        for call in pooled.held:
            entry = granted.get(call)
            if entry is not None and entry.grant.container == container:
                self.calls.charge_so_far(entry, (at - entry.granted_at) * 1000.0 * rate)

    def grant(self, entry: QueueEntry, pooled: PooledContainer, gateway: str, epoch: int, at: float) -> Grant:
        """Reserve a slot for a picked call; returns the grant of its home, `gateway`, which acts under `epoch`."""
        call, pool = entry.call, self.pool
        pool.reserve(pooled, call.call_id, at)
        self.back_until = None
        waited_ms, timeline = 0.0, {}
        if pool.ready_since is not None and entry.pushed_at < pool.ready_since:
            # The call waited while no container was ready.
            waited_ms, timeline = (pool.ready_since - entry.pushed_at) * 1000.0, pooled.timeline
        entry.grant = Grant(
            call_id=call.call_id,
            container=pooled.container,
            node=pooled.node,
            instance=pooled.instance,
            epoch=epoch,
            grant_number=call.grant_number + 1,
            gateway=call.gateway,
            home=gateway if self.calls else call.gateway,
            start_ms=waited_ms,
            timeline=timeline,
            ahead=entry.ahead,
        )
        entry.granted_at = at
        return entry.grant

    def start_failure(self, credit: Credit, at: float) -> StartFailure | None:
        """Note the result of a start; the error of what waits, if the next start would fail in the same way.

        One failure may be due to its node while another container is starting; two in a row are due to the function.
        """
        if credit.state is ContainerState.READY:
            self.load_errors = 0
        if credit.error is None or self.pool.has(ContainerState.READY):
            return None
        if not is_misconfigured(credit.error):
            self.losses.lost(credit.container, (), f"{credit.error.type}: {credit.error.message}", at)
        self.load_errors += 1
        certain = self.load_errors > 1 or not self.pool.has(*STARTING)
        return start_failure(credit) if certain else None

    def slow(self, least: float = ALERT) -> list[SlowFlow]:
        return self.slowdowns.slow(self.version, self.function, least)

    def note_shortage(self, shortage: Shortage, at: float) -> bool:
        """The controller has no capacity; `never` means that the version fits nowhere in the fleet.

        Returns whether that has been so for long enough to refuse what waits.
        """
        if not shortage.never:
            self.never_since = None
        elif self.never_since is None or at - self.shortage_at > SHORTAGE_S:
            self.never_since = at
        self.shortage, self.shortage_at = shortage.reason, at
        self.room_at = at + shortage.room_ms / 1000.0
        patience_s = SHUT_DOWN_S if shortage.shut_down else NEVER_FITS_S
        return self.never_since is not None and at - self.never_since >= patience_s

    def why_without_room(self, at: float, left_s: float) -> Unavailable | None:
        """The refusal of a call that has less time left than the first container needs to find a place; else None."""
        room_s = self.room_at - at
        if room_s <= left_s or not self.shortage_now(at) or self.pool.capacity or self.pool.has(*STARTING):
            return None
        expected = f"a place is expected in {duration_text(room_s)}, and the call has {duration_text(max(0.0, left_s))}"
        return Unavailable(f"{self.shortage}; {expected}.", retry_after=room_s)

    def expect_back(self, at: float) -> None:
        """Calls are refused for want of a place, and come again when there is one, or a tenth of the time later."""
        self.back_until = self.room_at + min(BACK_AT_MOST_S, 0.1 * (self.room_at - at) + BACK_WITHIN_S)

    def without_room(self, at: float) -> list[tuple[QueueEntry, Unavailable]]:
        """The waiting calls that have less time left than that, each with its refusal."""
        waiting = ((entry, self.why_without_room(at, entry.leaves_at - at)) for entry in self.calls)
        return [(entry, refusal) for entry, refusal in waiting if refusal is not None]

    def shortage_now(self, at: float) -> str:
        return self.shortage if at - self.shortage_at <= SHORTAGE_S else ""

    def is_forgettable(self, at: float) -> bool:
        """Whether the version has been unused for KEEP_IDLE_S."""
        idle = not self.busy and not self.calls.statistics().in_flight and not len(self.pool)
        return idle and at - self.used_at > KEEP_IDLE_S
