"""The home of functions: it queues calls, counts the free slots of their containers, and grants.

The story of a call, by names
-----------------------------
Who is let in. `Home.enqueue` finds the `VersionQueue` of the call's version.
    `admit` refuses a call that cannot meet its deadline or finds the queue full;
    for lack of a container it is demand all the same, or none would ever start (`VersionQueue.admit`).
    `LossAttribution.admit` refuses calls of a version, or of a tenant, whose containers keep crashing.
    `FairQueue.push` puts the call at the end of its `Flow` (version, tenant, class).
Who goes next. `Home.on_credit` and `Home.done` free slots; `Home.grants` uses them.
    `ContainerPool.choose` picks a container with a free slot.
    `FairQueue.pick` picks the call: the class, then the tenant with the least service over its weight.
    `VersionQueue.grant` makes the `Grant`; `GrantBook` keeps it until `done` reports the cost.
    `Home.refused` puts a call back to its place if the agent did not take it.
Who gives way. `Home.expire` returns a `Dropped` for each call that leaves without a grant (`QueuedCalls`).

`Homes` feeds events in, then asks for `expire`, `grants` and `demand`, and again at `next_wake`, only while the lease
is valid. A `Home` reads no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant, Outcome, Refusal
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import Credit, Shortage
from pilotlight_core.model.messages.scheduling import BreakerReport, Dropped, HomeState
from pilotlight_core.model.timers import Timers
from pilotlight_core.model.units import most_gpu_ms
from pilotlight_gateway.cluster.node_incarnations import NodeIncarnations
from pilotlight_gateway.home import home_state
from pilotlight_gateway.home.call_admission import QueueLimits, ServiceTime
from pilotlight_gateway.home.grant_book import GrantBook
from pilotlight_gateway.home.home_report import (
    HomeStatistics,
    HomeVersionLoad,
    breakers_of,
    statistics_of,
    version_loads_of,
)
from pilotlight_gateway.home.queued_calls import QueuedCalls
from pilotlight_gateway.home.tier_queue import FunctionCounters, QueueEntry
from pilotlight_gateway.home.version_demand import demand_of
from pilotlight_gateway.home.version_queue import VersionQueue

__all__ = ["Dropped", "Home", "HomeStatistics", "QueueLimits"]

DEMAND_EVERY_S = 0.25
"""Between two demands of a version while it has any."""
REFRESH_EVERY_S = 0.25
"""Between two checks of the containers of a version whose calls wait."""
SWEEP_EVERY_S = 5.0
"""Between two checks for what can be forgotten."""


class Home:
    """The queues of every version that this gateway schedules under one lease."""

    def __init__(self, *, gateway: str, epoch: int, limits: QueueLimits | None = None) -> None:
        self.gateway = gateway
        self.epoch = epoch
        self._limits = limits or QueueLimits()
        self._queues: dict[str, VersionQueue] = {}
        self._counters: dict[str, FunctionCounters] = {}
        self._learnt: dict[str, ServiceTime] = {}
        """By function, of the version that was called first last: the next one begins with it."""
        self._awake: dict[str, VersionQueue] = {}
        """Queues with a new call or a free slot: only there can a grant be made."""
        self._fresh: list[QueueEntry] = []
        """Queued since the last grants: most are granted at once, and need no timer."""
        self._queued = QueuedCalls(self._queues, self._awake)
        self._versions, self._deadlines = self._queued.versions, self._queued.deadlines
        self._grants = GrantBook()
        self._granted = self._grants.by_call
        self._demands = Timers[str]()
        self._refresh_at = 0.0
        self._nodes = NodeIncarnations()
        self._swept_at = 0.0

    # -- from origins ----------------------------------------------------------------------------------------------

    def enqueue(self, call: CallDescriptor, at: float) -> None:
        """Queue a call. Repeating a queued or granted call adds nothing; a grant that was lost is sent again.

        Raises:
            TooMuch, Unavailable, DeadlineExceeded: see `call_admission.admit`.
            Unavailable: the breaker of the version, or of the tenant, is open (`breaker_open`).
        """
        if call.call_id in self._versions:
            return
        granted = self._granted.get(call.call_id)
        if granted is not None:
            queue = self._queues[granted.call.version]
            if call.grant_number < granted.grant.grant_number:
                if (entry := self._grants.repeat(granted, call, queue)) is not None:
                    self._await(queue, entry, at)
                return
            self._grants.supersede(granted, queue)
        queue = self._queue_of(call.version, call.function, at)
        if not call.admitted:
            try:
                queue.admit(call, at)
            except Unavailable:
                self._wake(queue)
                raise
        queue.arrivals += 1
        entry = queue.calls.push(call, cost=call.cost, guess=queue.service_time.cost or 0.0, at=at)
        self._await(queue, entry, at)

    def refused(self, call: CallDescriptor, container: str, reason: Refusal, epoch: int, at: float) -> None:
        """The agent did not take grant `call.grant_number` of `epoch`: the call returns to its place, uncharged."""
        if call.call_id in self._versions:
            return
        queue = self._queue_of(call.version, call.function, at)
        if epoch == self.epoch:
            queue.pool.refuse(container, call.call_id, reason, at)
        granted = self._granted.get(call.call_id)
        if granted is not None and granted.grant.grant_number <= call.grant_number:
            self._grants.remove(granted)
            self._await(queue, queue.calls.give_back(granted, call), at)
        elif granted is None:
            self._await(queue, queue.calls.push(call, cost=call.cost, at=at, first=True), at)

    def done(
        self,
        call_id: str,
        container: str,
        grant_number: int,
        at: float,
        *,
        cost: float | None = None,
        frees: bool = True,
        outcome: Outcome | None = None,
    ) -> None:
        """A granted call has ended: its slot is free if `frees`, and it took `cost` GPU-milliseconds (None: unknown).

        `outcome` is for the breakers; None: unknown.
        """
        granted = self._granted.get(call_id)
        if granted is None or granted.grant.container != container or granted.grant.grant_number != grant_number:
            return
        del self._granted[call_id]
        if self._grants.released:
            self._grants.released.pop(call_id, None)
        queue = self._queues[granted.call.version]
        held_ms = (at - granted.granted_at) * 1000.0
        # Of less than one device nothing is implausible.
        queue.calls.settle(granted, cost if cost is None or cost <= held_ms else min(cost, most_gpu_ms(held_ms)))
        if frees:
            queue.pool.release(container, call_id)
            for whose in queue.ended(granted, self._granted, at, cost, outcome):
                self._queued.drop_broken(queue, whose, at)
        if queue.calls:
            self._wake(queue)

    def has(self, call_id: str) -> bool:
        """Whether a call waits here, or was granted from here and has not ended."""
        return call_id in self._versions or call_id in self._granted

    def node_of(self, call_id: str) -> str | None:
        """The node that a call was granted to; None: it has no grant."""
        granted = self._granted.get(call_id)
        return granted.grant.node if granted is not None else None

    def cancel(self, call_id: str) -> bool:
        """Remove a queued call, which will never be granted; False if it was not queued."""
        return self._queued.remove(call_id) is not None

    def send_back(self, versions: Iterable[str]) -> None:
        """Drop what waits for versions because of a split that holds no more: their origins choose anew."""
        for version in versions:
            if (queue := self._queues.get(version)) is not None:
                self._queued.send_back(queue)

    def gateway_gone(self, gateway: str) -> list[str]:
        """An origin is gone with its callers: remove its queued calls and return their ids."""
        return self._queued.remove_of_gateway(gateway)

    # -- from agents and the controller ----------------------------------------------------------------------------

    def on_credit(self, credit: Credit, at: float) -> None:
        """Apply a credit; late and repeated ones change nothing."""
        self.node_seen(credit.node, credit.instance, at)
        if self._nodes.is_former(credit.node, credit.instance):
            return
        queue = self._queue_of(credit.version, "", at)
        queue.tenant = credit.tenant
        freed = queue.pool.update(credit, at)
        if freed is None:
            return
        self._grants.release(freed, at, credit.container)
        queue.resized(at)
        queue.charge_running(credit.container, self._granted, at)
        if (failure := queue.start_failure(credit, at)) is not None:
            self._queued.drop_all(queue, *failure)
        self._wake(queue)

    def node_seen(self, node: str, instance: str, at: float) -> None:
        """A message came from an incarnation of a node; earlier incarnations are gone."""
        if (gone := self._nodes.seen(node, instance, at)) is not None:
            self.node_gone(gone.node, gone.instance, at)

    def node_gone(self, node: str, instance: str, at: float) -> None:
        """An incarnation is gone, or silent for so long that it counts as gone, with its containers."""
        for queue in self._queues.values():
            self._grants.release(queue.pool.gone(node, instance), at)
            queue.resized(at)
            self._wake(queue)

    def on_node_unheard(self, node: str, at: float) -> None:
        """The bus has no listener at a node: its containers are unusable until their next credit."""
        for queue in self._queues.values():
            queue.pool.quarantine_node(node)
            queue.resized(at)
            self._wake(queue)

    def on_shortage(self, shortage: Shortage, at: float) -> None:
        queue = self._queues.get(shortage.version)
        if queue is not None and queue.note_shortage(shortage, at):
            self._queued.drop_all(queue, "no_capacity", shortage.reason)
        elif queue is not None:
            self._queued.drop_without_room(queue, at)

    # -- for the driver --------------------------------------------------------------------------------------------

    def expire(self, at: float) -> list[Dropped]:
        """The calls that leave the queue with an error."""
        if self._fresh and self._fresh[0].pushed_at < at:
            self._set_deadlines()
        for call in self._deadlines.due(at):
            self._queued.drop_late(call, at)
        if self._versions and at >= self._refresh_at:
            self._refresh_at = at + REFRESH_EVERY_S
            for queue in self._queues.values():
                if queue.calls:
                    self._queued.drop_excess(queue, at)
        if self._grants.released:
            for granted in self._grants.take_expired(at):
                queue = self._queues[granted.call.version]
                queue.calls.settle(granted)
                self._wake(queue)
        if at - self._swept_at >= SWEEP_EVERY_S:
            self._sweep(at)
        return self._queued.take_dropped() if self._queued.dropped else []

    def grants(self, at: float) -> list[Grant]:
        """Every grant that can be made now, in the order of the picks."""
        made, self._grants.resend = self._grants.resend, []
        for queue in self._awake.values():
            if queue.calls:
                self._grant_all(queue, made, at)
            # A call that was granted at once is no edge: it waits for no container.
            if queue.edge or (queue.busy and queue.version not in self._demands):
                self._demands.set(queue.version, at)
        self._awake.clear()
        self._set_deadlines()
        return made

    @property
    def is_awake(self) -> bool:
        """Whether anything happened that may allow a grant."""
        return bool(self._awake)

    def demand(self, at: float) -> list[Demand]:
        """The demands to publish now: a first call at once, others every DEMAND_EVERY_S while busy, and a last one."""
        demands = []
        for version in self._demands.due(at):
            queue = self._queues[version]
            if queue.edge or at >= queue.reported_at + DEMAND_EVERY_S:
                demands.append(demand_of(queue, self.gateway, self.epoch, self._granted, at))
            if queue.busy:
                self._demands.set(version, queue.reported_at + DEMAND_EVERY_S)
        return demands

    def next_wake(self) -> float | None:
        """When to ask again if nothing happens; None: never."""
        if self._queued.dropped:
            return 0.0  # at once: `grants` drops calls that are too late, and `expire` returns them
        looks = self._refresh_at if self._versions else None
        expires = self._grants.expires_at() if self._grants.released else None
        wakes = (self._deadlines.next(), self._demands.next(), looks, expires)
        return min((wake for wake in wakes if wake is not None), default=None)

    def hand_over(self, at: float) -> HomeState:
        """The state for the next home, in a planned move. This home must not be used afterwards."""
        return home_state.state_of(self._queued.descriptors(at), self._counters, self._queues.values(), at)

    def restore(self, state: HomeState, at: float) -> None:
        """Continue from the state of a former home. Agents report what it had granted."""
        for function, values in state.counters.items():
            home_state.restore_counters(self._counters.setdefault(function, FunctionCounters()), values)
        for version, learnt in state.versions.items():
            home_state.restore_version(self._queue_of(version, learnt.function, at), learnt, at)
        for call in state.calls:
            self.enqueue(call, at)

    def deposed(self) -> frozenset[str]:
        """The versions of which the agent of a container has seen a newer epoch: this home grants nothing there."""
        return frozenset(version for version, queue in self._queues.items() if queue.pool.deposed)

    def statistics(self, at: float) -> HomeStatistics:
        return statistics_of(
            self._queues.values(),
            queued=len(self._versions),
            granted=len(self._granted),
            shed=self._queued.shed,
            at=at,
        )

    @property
    def queues(self) -> Collection[VersionQueue]:
        """Of all its versions; a live view."""
        return self._queues.values()

    def version_loads(self, at: float) -> list[HomeVersionLoad]:
        """What is there of each version."""
        return list(version_loads_of(self._queues.values(), at))

    def breakers(self, at: float) -> tuple[BreakerReport, ...]:
        """The breakers of versions, tenants and containers that are not closed or count failures."""
        return tuple(report for queue in self._queues.values() for report in breakers_of(queue, at))

    def check_integrity(self) -> None:
        waiting = {entry.call_id: version for version, queue in self._queues.items() for entry in queue.calls}
        require(waiting == self._versions, "the calls that wait are not the calls in the queues")
        self._grants.check_integrity()
        require(not self._granted.keys() & self._versions.keys(), "a call waits and is granted")
        in_flight = sum(queue.calls.statistics().in_flight for queue in self._queues.values())
        require(in_flight == len(self._granted), "grants are not what the queues have in flight")
        for queue in self._queues.values():
            queue.calls.check_integrity()
            queue.pool.check_integrity()

    # -- inside --------------------------------------------------------------------------------------------------

    def _queue_of(self, version: str, function: str, at: float) -> VersionQueue:
        queue = self._queues.get(version)
        if queue is None:
            queue = self._queues[version] = VersionQueue(version, self._limits, self.epoch, at)
        if function and not queue.function:
            queue.set_function(function, self._counters.setdefault(function, FunctionCounters()))
            queue.service_time.begin_as(self._learnt.get(function))
            self._learnt[function] = queue.service_time
        return queue

    def _await(self, queue: VersionQueue, entry: QueueEntry, at: float) -> None:
        call = entry.call
        if not self._versions:
            self._refresh_at = max(self._refresh_at, at + REFRESH_EVERY_S)
        self._versions[call.call_id] = queue.version
        entry.leaves_at = min(at + call.remaining_ms / 1000.0, entry.since + self._limits.age_s(call))
        self._fresh.append(entry)
        self._awake[queue.version] = queue

    def _set_deadlines(self) -> None:
        for entry in self._fresh:
            if entry.waiting:
                self._deadlines.set(entry.call_id, entry.leaves_at)
        self._fresh.clear()

    def _wake(self, queue: VersionQueue) -> None:
        self._awake[queue.version] = queue

    def _grant_all(self, queue: VersionQueue, made: list[Grant], at: float) -> None:
        pool, calls = queue.pool, queue.calls
        pool.quarantine(at)
        while calls and (pooled := pool.choose()):
            if pool.spare and calls.parts is None:
                calls.count_parts()
            if calls.reserving or calls.parts is not None:
                entry = calls.pick(free=pool.free, slots=pool.slots, spare=pool.spare, at=at)
            else:
                entry = calls.pick()
            if entry is None:
                return
            if calls and self._queued.drop_too_late(queue, entry, at):
                continue
            del self._versions[entry.call_id]
            self._deadlines.clear(entry.call_id)
            if entry.call.affinity is not None:
                pooled = pool.choose_near(entry.call.affinity) or pooled
            made.append(queue.grant(entry, pooled, self.gateway, self.epoch, at))
            self._granted[entry.call_id] = entry

    def _sweep(self, at: float) -> None:
        self._swept_at = at
        self._nodes.forget(at)
        for queue in list(self._queues.values()):
            self._grants.release(queue.pool.forget_silent(at), at)
            queue.slowdowns.age()
            if queue.is_forgettable(at):
                queue.calls.close()
                del self._queues[queue.version]
                self._demands.clear(queue.version)
        used = {queue.function for queue in self._queues.values()}
        self._counters = {function: counters for function, counters in self._counters.items() if function in used}
        self._learnt = {function: learnt for function, learnt in self._learnt.items() if function in used}
