"""The home of functions: it queues calls fairly, knows the room of their containers, and grants.

How it works
------------
One `Home` acts under one lease, whose revision is its `epoch`. It holds descriptors, never bodies or sockets: those
stay with the *origin*, which may be another gateway. What passes between the two is plain data:

    origin -> home   enqueue(CallDescriptor)   queue this; also repeated while nothing is heard (idempotent)
                     refused(CallDescriptor)   an agent did not take the grant: back to its place, uncharged
                     done(call, ...)           it ended: the slot is free, this is what it cost
                     cancel(call)              nobody wants it any more
    home -> origin   Grant                     this call may go to that container, once
                     Dropped                   this call leaves the queue with an error

A call comes by `enqueue`: `call_admission` refuses at once what cannot make its deadline or does not fit. Else it
waits in the `FairQueue` of its version (`version_queue`), by class, then by tenant, until a container of that version
has a slot (`container_pool`, which credits tell of). The pick is a `Grant`, noted in the `GrantBook` until `done`
says what it cost; a grant that was refused puts its call back to the head of its flow. A call leaves the queue
without a grant when its time is over, when the capacity that is left cannot serve it (`shedding`), or when its
version fails (`breakers`).

The driver (`homes`) feeds events in and then asks, in this order: `expire(at)`, `grants(at)`, `demand(at)`; it asks
again at `next_wake()`, and only while its lease is valid by its own clock. Nothing here reads a clock.

Why nothing is lost or run twice: a grant is a permission that only the origin can use, and it uses at most one at a
time. So the home may forget a grant that was not heard of again, and after its own death the next home starts empty:
origins enqueue what was not granted, agents tell by credit what they hold, and refuse what an older epoch granted.
Each grant of a call has a higher number than any that its origin has seen.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.agent_messages import (
    CallDescriptor,
    Credit,
    Demand,
    Grant,
    Outcome,
    Refusal,
    RemoteError,
    Shortage,
)
from pilotlight_core.model.messages.scheduling import BreakerReport, Dropped, HomeState
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.cluster.node_incarnations import NodeIncarnations
from pilotlight_gateway.home import home_state
from pilotlight_gateway.home.call_admission import QueueLimits, admit
from pilotlight_gateway.home.container_pool import PooledContainer
from pilotlight_gateway.home.home_report import BreakerCounts, HomeStatistics, breakers_of, worst_of
from pilotlight_gateway.home.tier_queue import FunctionCounters, QueueEntry
from pilotlight_gateway.home.version_queue import GrantBook, OutstandingGrant, VersionQueue

__all__ = ["Dropped", "Home", "HomeStatistics", "QueueLimits"]

DEMAND_EVERY = 0.25
"""Seconds between two demands of a version while it has any."""
LOOK_EVERY = 0.25
"""Seconds between two looks at what has become of the containers of a version whose calls wait."""
SWEEP_EVERY = 5.0
"""Seconds between two looks for what can be forgotten."""
NEVER_FOR = 10.0
"""Seconds for which a version must fit nowhere in the fleet before its calls are refused: a node may be restarting."""


class Home:
    """The queues and rooms of every version that this gateway schedules, under one lease."""

    def __init__(self, *, gateway: str, epoch: int, limits: QueueLimits | None = None) -> None:
        self.gateway = gateway
        self.epoch = epoch
        self._limits = limits or QueueLimits()
        self._desks: dict[str, VersionQueue] = {}
        self._counters: dict[str, FunctionCounters] = {}
        self._versions: dict[str, str] = {}
        """Call that waits -> its version."""
        self._grants = GrantBook()
        self._resend: list[Grant] = []
        self._dropped: list[Dropped] = []
        self._stirred: dict[str, VersionQueue] = {}
        """Where a call or a room has come: only there can a grant be made."""
        self._deadlines = Timers[str]()
        self._demands = Timers[str]()
        self._look_at = 0.0
        self._shed: Counter[int] = Counter()
        self._nodes = NodeIncarnations()
        self._swept_at = 0.0

    # -- what origins say ----------------------------------------------------------------------------------------

    def enqueue(self, call: CallDescriptor, at: float) -> None:
        """Queue a call. A repetition of what is queued or granted is no second call; a lost grant is sent again.

        Raises:
            TooMuch, Unavailable, DeadlineExceeded: see `admission.admit`.
            Unavailable: the version's breaker, or its tenant's, is open (`breaker_open`).
        """
        if call.call_id in self._versions:
            return
        granted = self._grants.by_call.get(call.call_id)
        if granted is not None and not self._supersede(granted, call, at):
            return
        desk = self._desk(call.version, call.function, at)
        if not call.admitted:
            admit(call, desk.queue, desk.rooms, desk.pace, self._limits, at)
            desk.losses.admit(call.call_id, call.tenant, at)
        desk.arrivals += 1
        self._await(desk, desk.queue.push(call, cost=call.cost, guess=desk.pace.cost or 0.0, at=at), at)

    def refused(self, call: CallDescriptor, container: str, reason: Refusal, epoch: int, at: float) -> None:
        """The agent did not take grant `call.number` of `epoch`: back to the head of its flow, uncharged."""
        if call.call_id in self._versions:
            return
        desk = self._desk(call.version, call.function, at)
        if epoch == self.epoch:
            desk.rooms.refuse(container, call.call_id, reason, at)
            desk.deposed = desk.deposed or reason is Refusal.STALE_EPOCH
        granted = self._grants.by_call.get(call.call_id)
        if granted is not None and granted.grant.grant_number <= call.grant_number:
            self._grants.take(granted)
            self._await(desk, desk.queue.give_back(granted.entry, call), at)
        elif granted is None:
            self._await(desk, desk.queue.push(call, cost=call.cost, at=at, first=True), at)

    def done(
        self,
        call: str,
        container: str,
        number: int,
        at: float,
        *,
        cost: float | None = None,
        frees: bool = True,
        outcome: Outcome | None = None,
    ) -> None:
        """A granted call has ended: its slot is free (`frees`), and it took `cost` GPU-milliseconds (None: unknown).

        `outcome` is how, for the breakers; None: unknown.
        """
        granted = self._grants.by_call.get(call)
        if granted is None or (granted.grant.container, granted.grant.grant_number) != (container, number):
            return
        desk = self._grants.take(granted)
        desk.queue.settle(granted.entry, cost)
        if frees:
            desk.rooms.release(container, call)
            for whose in desk.ended(granted, self._grants.by_call, at, cost, outcome):
                self._broke(desk, whose, at)
        if desk.queue:
            self._stir(desk)

    def cancel(self, call: str) -> bool:
        """Nobody wants the call any more. True if it was still queued: then it will never be granted."""
        return self._remove(call) is not None

    def gateway_gone(self, gateway: str) -> list[str]:
        """An origin is gone with its sockets: its queued calls are removed. Returns them."""
        gone = [e.id for desk in self._desks.values() for e in desk.queue if e.call.gateway == gateway]
        for call in gone:
            self._remove(call)
        return gone

    # -- what agents and the controller say ----------------------------------------------------------------------

    def credit(self, credit: Credit, at: float) -> None:
        """A container speaks of its room. Late and repeated credits change nothing."""
        self.node_seen(credit.node, credit.instance, at)
        if self._nodes.is_former(credit.node, credit.instance):
            return
        desk = self._desk(credit.version, "", at)
        desk.tenant = credit.tenant
        freed = desk.rooms.hear(credit, at)
        if freed is None:
            return
        self._grants.loosen(freed, at, credit.container)
        desk.resized(at)
        desk.charge_running(credit.container, self._grants.by_call, at)
        desk.deposed = desk.deposed or credit.epoch > self.epoch
        if desk.cannot_load(credit, at):
            self._drop_all(desk, "load_failed", credit.reason, error=credit.error)
        self._stir(desk)

    def node_seen(self, node: str, instance: str, at: float) -> None:
        """An incarnation of a node's agent has spoken; what an earlier one ran is gone."""
        if (gone := self._nodes.seen(node, instance, at)) is not None:
            self.node_gone(gone.node, gone.instance, at)

    def node_gone(self, node: str, instance: str, at: float) -> None:
        """An incarnation is gone, or silent for so long that it counts as gone, with its containers."""
        for desk in self._desks.values():
            self._grants.loosen(desk.rooms.gone(node, instance), at)
            desk.resized(at)
            self._stir(desk)

    def node_unheard(self, node: str, at: float) -> None:
        """The bus says that nobody listens at a node: its containers are not there until they speak again."""
        for desk in self._desks.values():
            desk.rooms.unheard(node)
            desk.resized(at)
            self._stir(desk)

    def shortage(self, shortage: Shortage, at: float) -> None:
        """The controller has no capacity for a version, and says why."""
        desk = self._desks.get(shortage.version)
        if desk is None:
            return
        desk.note_shortage(shortage, at)
        if desk.never_since is not None and at - desk.never_since >= NEVER_FOR:
            self._drop_all(desk, "no_capacity", shortage.reason)

    # -- what the driver asks ------------------------------------------------------------------------------------

    def expire(self, at: float) -> list[Dropped]:
        """The calls that leave the queue with an error: out of time, shed, or without hope."""
        for call in self._deadlines.due(at):
            desk = self._desks[self._versions[call]]
            entry = self._remove(call, at)
            if entry is not None:
                self._drop(entry, *desk.why_out_of_time(entry, at))
        if self._versions and at >= self._look_at:
            self._look_at = at + LOOK_EVERY
            for desk in self._desks.values():
                if desk.queue:
                    self._look(desk, at)
        for granted in self._grants.take_untold(at):
            granted.desk.queue.settle(granted.entry)
            self._stir(granted.desk)
        if at - self._swept_at >= SWEEP_EVERY:
            self._sweep(at)
        dropped, self._dropped = self._dropped, []
        return dropped

    def grants(self, at: float) -> list[Grant]:
        """Every grant that can be made now, in the order in which the calls were picked."""
        made, self._resend = self._resend, []
        for desk in self._stirred.values():
            if desk.queue and not desk.deposed:
                self._grant_all(desk, made, at)
            # What was granted at once never was a queue: an edge is what still waits after that.
            if desk.edge or (desk.busy and desk.version not in self._demands):
                self._demands.set(desk.version, at)
        self._stirred.clear()
        return made

    @property
    def stirred(self) -> bool:
        """Whether something came that may allow a grant."""
        return bool(self._stirred)

    def demand(self, at: float) -> list[Demand]:
        """What the controller must be told now: edges at once, else each 250 ms while busy, and a last word."""
        told = []
        for version in self._demands.due(at):
            desk = self._desks[version]
            if desk.edge or at >= desk.told_at + DEMAND_EVERY:
                told.append(desk.demand(self.gateway, self.epoch, at))
            if desk.busy:
                self._demands.set(version, desk.told_at + DEMAND_EVERY)
        return told

    def next_wake(self) -> float | None:
        """When to ask again if nothing happens; None: never."""
        if self._dropped:
            return 0.0  # at once: a grant was refused to a call that is too late, and its origin is to hear of it
        looks = self._look_at if self._versions else None
        wakes = (self._deadlines.next(), self._demands.next(), looks, self._grants.untold_at())
        return min((wake for wake in wakes if wake is not None), default=None)

    def hand_over(self, at: float) -> HomeState:
        """What the next home should know, in a planned move. This one must not be asked for anything after it."""
        waiting = sorted((entry for desk in self._desks.values() for entry in desk.queue), key=lambda e: e.order)
        return HomeState(
            calls=tuple(self._as_of(entry, at) for entry in waiting),
            counters={
                function: {priority.value: c.values() for priority, c in counters.classes.items() if len(c)}
                for function, counters in self._counters.items()
            },
            versions=home_state.learnt_state(self._desks.values(), at),
        )

    def restore(self, state: HomeState, at: float) -> None:
        """Go on where a former home stopped. What it had granted and not seen the end of is heard of from agents."""
        for function, classes in state.counters.items():
            counters = self._counters.setdefault(function, FunctionCounters())
            for priority, values in classes.items():
                counters.classes[Priority(priority)].restore(values)
        for version, learnt in state.versions.items():
            home_state.restore(self._desk(version, learnt.function, at), learnt, at)
        for call in state.calls:
            self.enqueue(call, at)

    def deposed(self) -> frozenset[str]:
        """The versions for which agents have heard of a newer home: this one makes no more grants there."""
        return frozenset(version for version, desk in self._desks.items() if desk.deposed)

    def statistics(self, at: float) -> HomeStatistics:
        """How it is, at once."""
        oldest = min((since for d in self._desks.values() if (since := d.queue.oldest()) is not None), default=at)
        return HomeStatistics(
            queued=len(self._versions),
            oldest_ms=max(0.0, at - oldest) * 1000.0,
            granted=len(self._grants),
            containers=sum(len(desk.rooms.all()) for desk in self._desks.values()),
            versions=len(self._desks),
            deposed=len(self.deposed()),
            shed=dict(self._shed),
            breakers=BreakerCounts.of(self._desks.values()),
            slowdown=worst_of(desk.slowdowns.worst() for desk in self._desks.values()),
            slow=tuple(slow for desk in self._desks.values() for slow in desk.slow()),
        )

    def breakers(self, at: float) -> tuple[BreakerReport, ...]:
        """The breakers that are not closed, or count failures, of versions and of their containers."""
        return tuple(told for desk in self._desks.values() for told in breakers_of(desk, at))

    def check_integrity(self) -> None:
        """Raise AssertionError if parts of the state contradict each other."""
        waiting = {entry.id: version for version, desk in self._desks.items() for entry in desk.queue}
        require(waiting == self._versions, "the calls that wait are not the calls in the queues")
        self._grants.check_integrity()
        require(not self._grants.by_call.keys() & self._versions.keys(), "a call waits and is granted")
        in_flight = sum(desk.queue.statistics().in_flight for desk in self._desks.values())
        require(in_flight == len(self._grants), "grants are not what the queues have in flight")
        for desk in self._desks.values():
            desk.queue.check_integrity()
            desk.rooms.check_integrity()

    # -- inside --------------------------------------------------------------------------------------------------

    def _desk(self, version: str, function: str, at: float) -> VersionQueue:
        desk = self._desks.get(version)
        if desk is None:
            desk = self._desks[version] = VersionQueue(version, self._limits, at)
        if function and not desk.function:
            desk.name(function, self._counters.setdefault(function, FunctionCounters()))
        return desk

    def _supersede(self, granted: OutstandingGrant, call: CallDescriptor, at: float) -> bool:
        """A call that was granted is enqueued. True: queue it; False: it has its grant, or is back in the queue."""
        number = granted.grant.grant_number
        if call.grant_number >= number:  # its origin has seen that grant, and is done with it
            desk = self._grants.take(granted)
            desk.queue.settle(granted.entry)
            desk.rooms.release(granted.grant.container, call.call_id)
            return True
        if self._grants.is_loose(call.call_id):  # the grant was lost, and its place is given away
            desk = self._grants.take(granted)
            self._await(
                desk, desk.queue.give_back(granted.entry, msgspec.structs.replace(call, grant_number=number)), at
            )
        elif granted.desk.rooms.is_pending(granted.grant.container, call.call_id):
            self._resend.append(granted.grant)
        return False

    def _as_of(self, entry: QueueEntry, at: float) -> CallDescriptor:
        due = self._deadlines.at(entry.id)
        remaining = (due - at) * 1000.0 if due is not None else entry.call.remaining_ms
        age = (at - entry.since) * 1000.0
        return msgspec.structs.replace(entry.call, age_ms=age, remaining_ms=remaining, admitted=True)

    def _await(self, desk: VersionQueue, entry: QueueEntry, at: float) -> None:
        call = entry.call
        if not self._versions:
            self._look_at = max(self._look_at, at + LOOK_EVERY)
        self._versions[call.call_id] = desk.version
        self._deadlines.set(call.call_id, min(at + call.remaining_ms / 1000.0, entry.since + self._limits.age_s(call)))
        self._stir(desk)

    def _stir(self, desk: VersionQueue) -> None:
        self._stirred[desk.version] = desk

    def _grant_all(self, desk: VersionQueue, made: list[Grant], at: float) -> None:
        rooms, queue = desk.rooms, desk.queue
        rooms.quarantine(at)
        while queue and (room := rooms.choose()):
            entry = queue.pick(free=rooms.free, slots=rooms.slots, at=at) if queue.reserving else queue.pick()
            if entry is None:
                return
            if queue and self._is_too_late(desk, entry, at):
                continue
            made.append(self._grant(desk, room, entry, at))

    def _is_too_late(self, desk: VersionQueue, entry: QueueEntry, at: float) -> bool:
        """Let a call go that cannot be done any more, while others wait whose turn would be wasted on it."""
        leaves = self._deadlines.at(entry.id)
        if entry.call.grant_number or leaves is None or (leaves - at) * 1000.0 >= desk.pace.least_ms:
            return False
        desk.queue.forgo(entry)
        self._forget_waiting(entry, desk, at)
        self._drop(entry, *desk.why_too_late(entry, leaves, at))
        return True

    def _grant(self, desk: VersionQueue, room: PooledContainer, entry: QueueEntry, at: float) -> Grant:
        call = entry.id
        del self._versions[call]
        self._deadlines.clear(call)
        desk.rooms.reserve(room, call, at)
        waited, timeline = desk.start_waited(entry, room)
        grant = Grant(
            call_id=call,
            container=room.container,
            node=room.node,
            instance=room.instance,
            epoch=self.epoch,
            grant_number=entry.call.grant_number + 1,
            gateway=entry.call.gateway,
            home=self.gateway if desk.queue else entry.call.gateway,
            start_ms=waited,
            timeline=timeline,
        )
        self._grants.enter(OutstandingGrant(desk, entry, grant, at))
        return grant

    def _remove(self, call: str, at: float | None = None) -> QueueEntry | None:
        version = self._versions.get(call)
        if version is None:
            return None
        desk = self._desks[version]
        self._stir(desk)
        if (entry := desk.queue.remove(call)) is not None:
            self._forget_waiting(entry, desk, at)
        return entry

    def _forget_waiting(self, entry: QueueEntry, desk: VersionQueue, at: float | None) -> None:
        del self._versions[entry.id]
        self._deadlines.clear(entry.id)
        desk.losses.withdrawn(entry.id, entry.call.tenant, at)

    def _look(self, desk: VersionQueue, at: float) -> None:
        """Tighten: what cannot be served in time by the capacity that is left is told so."""
        for entry, wait in desk.excess(self._deadlines.at, at):
            self._remove(entry.id, at)
            self._shed[entry.call.tier_rank] += 1
            detail = f"Capacity has shrunk: its turn would come in {wait / 1000.0:.1f} s."
            self._drop(entry, "no_capacity", detail, retry_after=wait / 1000.0)
        self._stir(desk)

    def _broke(self, desk: VersionQueue, whose: str, at: float) -> None:
        refusal = desk.losses.breaker_of(whose).refusal(at)
        self._drop_all(desk, refusal.wire_code, refusal.detail, retry_after=refusal.retry_after, tenant=whose)

    def _drop(
        self,
        entry: QueueEntry,
        code: str,
        detail: str,
        retry_after: float | None = None,
        error: RemoteError | None = None,
    ) -> None:
        call, gateway = entry.id, entry.call.gateway
        dropped = Dropped(call_id=call, gateway=gateway, code=code, detail=detail, error=error, retry_after=retry_after)
        self._dropped.append(dropped)

    def _drop_all(
        self,
        desk: VersionQueue,
        code: str,
        detail: str,
        retry_after: float | None = None,
        error: RemoteError | None = None,
        tenant: str = "",
    ) -> None:
        for call in [entry.id for entry in desk.queue if tenant in ("", entry.call.tenant)]:
            if (entry := self._remove(call)) is not None:
                self._drop(entry, code, detail, retry_after, error)

    def _sweep(self, at: float) -> None:
        self._swept_at = at
        self._nodes.forget(at)
        for desk in list(self._desks.values()):
            self._grants.loosen(desk.rooms.bury(at), at)
            desk.slowdowns.age()
            if desk.is_forgettable(at):
                desk.queue.close()
                del self._desks[desk.version]
                self._demands.clear(desk.version)
        used = {desk.function for desk in self._desks.values()}
        self._counters = {function: counters for function, counters in self._counters.items() if function in used}
