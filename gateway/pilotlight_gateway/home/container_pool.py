"""The containers of one version as the home knows them, and which of them takes the next call.

A `Credit` lists the calls that a container holds. The home adds the grants that the agent cannot have seen yet
(*pending*) and never grants more than `slots`:

    used = len(held) + len(pending)

A pending grant becomes held when a credit lists it. It is free again when its call ends or is refused, when a later
credit omits it, or when no credit has listed it for `PENDING_S`: the grant or the run was lost, and if it arrives after
all, the slot table of the agent decides. So the next credit repairs every lost message, within about a second.

A container is usable while it is READY, its last credit is younger than `QUARANTINE_AFTER_S`, it has refused no call
since, and its breaker is closed; a half-open breaker allows one call. The *capacity* of the version counts slots of
usable containers and of those that are only full; waits are estimated by it. Of the usable containers with a free slot,
the choice is

1. the fullest of those whose forming batch has room, since one more item in a batch costs little;
2. below the target utilisation the oldest, so that the others become idle and can be stopped;
3. above it the one with most free slots.

A call of an engine goes to where its adapter, then most of its prompt, likely is in memory (`choose_near`), unless
that one is much fuller than others: in slots, or in its room for keys and values (`Credit.pressure`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.call_affinity import CallAffinity
from pilotlight_core.model.messages.call_messages import Refusal
from pilotlight_core.model.messages.node_messages import UNPARKED, ContainerState, Credit
from pilotlight_gateway.home.breakers import CircuitState, ContainerBreaker, ContainerVerdict
from pilotlight_gateway.home.recent_affinities import RecentAffinities

QUARANTINE_AFTER_S = 3.0
"""A container without a credit for this long (three heartbeats) gets no more calls."""
PENDING_S = 3.0
"""A grant that no credit has listed for this long counts as lost."""
HEARTBEAT_S = 1.25
"""The interval between credits of a container, and a margin."""
TARGET_UTILISATION = 0.7
"""Part of the usable slots up to which calls are packed rather than spread."""
CROWDED = 0.2
"""Part of its slots, or of its room for keys and values, by which a container may be fuller than the emptiest one and
still get a call for what it has in memory. Without such a bound, a prompt that all callers share would bring all of
them to one container."""
FORGET_AFTER_S = 10.0
"""A container without a credit for this long is forgotten: late enough that no late credit revives one that is gone,
and soon enough that a lost last message does not keep one running."""
CLOSING = (Refusal.DRAINING, Refusal.GONE, Refusal.NO_SLOT, Refusal.STALE_EPOCH)
"""Refusals that concern the container rather than the call."""
CALLERS_AT_MOST = 4_096
"""Tenants for whom the last answer is remembered."""
STARTING = (ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING)


class PooledContainer:
    """One container as of its last credit."""

    __slots__ = (
        "affinities", "batch_room", "breaker", "charged_at", "container", "counted", "counted_spare", "credit_at",
        "held", "instance", "node", "order", "pending", "pressure", "seq", "shut", "slots", "spare", "started_at",
        "state", "timeline",
    )  # fmt: skip

    def __init__(self, credit: Credit, order: int, epoch: int, at: float) -> None:
        self.container = credit.container
        self.node = credit.node
        self.instance = credit.instance
        self.order = order
        """Rises in the order of first credits."""
        self.pending: dict[str, float] = {}
        self.counted = (0, 0, 0)
        """Slots, used slots and capacity as included in the sums of the pool."""
        self.counted_spare = 0
        self.breaker: ContainerBreaker | None = None
        """None while nothing has failed in it."""
        self.charged_at = at
        """When `VersionQueue.charge_running` last charged its calls."""
        self.started_at: float | None = None
        self.affinities: RecentAffinities | None = None
        """None: it was given no call of an engine."""
        self.update(credit, epoch, at)

    def update(self, credit: Credit, epoch: int, at: float) -> None:
        self.seq = credit.seq
        self.state = credit.state
        self.slots = credit.slots
        self.spare = credit.spare
        self.pressure = credit.pressure
        self.held = dict.fromkeys(credit.held)
        self.batch_room = credit.batch_room
        self.timeline = credit.timeline
        self.credit_at = at
        self.shut: Refusal | None = Refusal.STALE_EPOCH if credit.epoch > epoch else None
        """Why it takes no call: it refused one since its last credit, or its agent has heard of a newer home. That is
        believed of this container alone, since a hostile agent could depose any home."""
        if self.state in STARTING and self.started_at is None:
            self.started_at = at

    @property
    def used(self) -> int:
        return len(self.held) + len(self.pending)

    @property
    def load(self) -> float:
        """Of an engine: how full its slots are, or its room for keys and values, if few calls take much of that."""
        return max(self.used / self.slots, self.pressure)

    def sums(self, quarantined: bool) -> tuple[int, int, int]:
        """Slots to grant from, used ones of them, and slots that count as capacity."""
        if self.state is not ContainerState.READY or quarantined:
            return 0, 0, 0
        if self.shut is None and self.breaker is None:
            used = len(self.held) + len(self.pending)
            return self.slots, used if used < self.slots else self.slots, self.slots
        if self.shut not in (None, Refusal.NO_SLOT):
            return 0, 0, 0
        if self.breaker is not None and self.breaker.state is not CircuitState.CLOSED:
            probing = self.breaker.state is CircuitState.HALF_OPEN and self.shut is None and self.used < self.slots
            return (1, int(self.breaker.probe != ""), 0) if probing else (0, 0, 0)
        if self.shut is not None:
            return 0, 0, self.slots
        return self.slots, min(self.used, self.slots), self.slots


class ContainerPool:
    def __init__(self, epoch: int = 0) -> None:
        self._epoch = epoch
        """Of the home."""
        self.slots = 0
        self.used = 0
        self.capacity = 0
        """Slots of the usable containers and of those that are only full."""
        self.spare = 0
        """Of `slots`, those for flows that hold less than their part of the others (`slot_parts`)."""
        self.ready_since: float | None = None
        """When the first container became ready after a time without any, if its start was seen."""
        self.start_ms: float | None = None
        self._containers: OrderedDict[str, PooledContainer] = OrderedDict()
        """Ordered by their last credit, the oldest first."""
        self._open: dict[str, PooledContainer] = {}
        """Usable, with a free slot."""
        self._quarantined: dict[str, PooledContainer] = {}
        self._starting: dict[str, PooledContainer] = {}
        self._broken: dict[str, PooledContainer] = {}
        self._failing = False
        """Whether any container has ever had a failure: until then the end of a call costs nothing here."""
        self._fine: dict[str, float] = {}
        """Tenant -> instant of its last answer, in any container."""
        self._inherited: dict[str, ContainerBreaker] = {}
        """Container -> breaker of a former home, until its first credit here."""
        self._inherited_until = 0.0
        self._orders = 0

    def __len__(self) -> int:
        return len(self._containers)

    def get(self, container: str) -> PooledContainer | None:
        return self._containers.get(container)

    def all(self) -> list[PooledContainer]:
        return [pooled for pooled in self._containers.values() if pooled.state is not ContainerState.GONE]

    @property
    def free(self) -> int:
        """Free slots of the usable containers."""
        return self.slots - self.used

    def running(self) -> int:
        """Calls that containers hold or are about to."""
        return sum(pooled.used for pooled in self._containers.values())

    def calls(self) -> Iterator[str]:
        """The ids of those calls."""
        for pooled in self._containers.values():
            yield from pooled.held
            yield from pooled.pending

    @property
    def deposed(self) -> bool:
        """Whether the agent of a container has heard of a newer home."""
        return any(pooled.shut is Refusal.STALE_EPOCH for pooled in self._containers.values())

    def has(self, *states: ContainerState) -> bool:
        return any(pooled.state in states for pooled in self._containers.values())

    def starting(self, at: float) -> list[tuple[float | None, int]]:
        """The containers that start: milliseconds until ready (None: unknown) and slots, the next first."""
        if not self._starting:
            return []
        found = []
        for pooled in self._starting.values():
            left = None
            if self.start_ms is not None:
                begun = pooled.started_at if pooled.started_at is not None else at
                left = max(0.0, self.start_ms - (at - begun) * 1000.0)
            found.append((left, pooled.slots))
        return sorted(found, key=lambda start: start[0] or 0.0)

    def update(self, credit: Credit, at: float) -> tuple[str, ...] | None:
        """Apply a credit; returns the calls that the container no longer holds, None if the credit is outdated."""
        pooled = self._containers.get(credit.container)
        if pooled is None or pooled.instance != credit.instance:
            freed = self._drop(pooled) if pooled is not None else ()
            self._orders += 1
            pooled = self._containers[credit.container] = PooledContainer(credit, self._orders, self._epoch, at)
            if self._inherited and (breaker := self._inherited.pop(pooled.container, None)) is not None:
                pooled.breaker, self._broken[pooled.container], self._failing = breaker, pooled, True
        elif credit.seq <= pooled.seq:
            return None
        else:
            was, held = pooled.state, pooled.held
            if was in STARTING and credit.state is ContainerState.READY:
                self._note_ready(pooled, credit, at)
            pooled.update(credit, self._epoch, at)
            freed = tuple(call for call in held if call not in pooled.held) + self._unlisted(pooled, at)
        self._containers.move_to_end(pooled.container)
        self._quarantined.pop(pooled.container, None)
        if pooled.state is ContainerState.GONE:
            freed += (*pooled.held, *pooled.pending)
            pooled.held, pooled.pending = {}, {}
            self._broken.pop(pooled.container, None)
        self._recount(pooled)
        return freed

    def _note_ready(self, pooled: PooledContainer, credit: Credit, at: float) -> None:
        if not self.has(ContainerState.READY):
            self.ready_since = at
        if UNPARKED in credit.timeline:
            return  # it says nothing of how long another takes
        begun = pooled.started_at if pooled.started_at is not None else at
        self.start_ms = sum(credit.timeline.values()) or (at - begun) * 1000.0

    def _unlisted(self, pooled: PooledContainer, at: float) -> tuple[str, ...]:
        """Remove what is held from what is pending; returns the grants that count as lost."""
        for call in pooled.held:
            pooled.pending.pop(call, None)
        lost = tuple(call for call, granted in pooled.pending.items() if granted < at - PENDING_S)
        for call in lost:
            del pooled.pending[call]
        return lost

    def choose(self) -> PooledContainer | None:
        """The container for the next call; None if there is no free slot."""
        pool = self._open.values()
        if len(pool) <= 1:
            return next(iter(pool), None)
        forming = [pooled for pooled in pool if pooled.batch_room > 0]
        if forming:
            return min(forming, key=lambda pooled: (pooled.batch_room, pooled.order))
        if self.used < TARGET_UTILISATION * self.slots:
            return min(pool, key=lambda pooled: pooled.order)
        return min(pool, key=lambda pooled: (pooled.used - pooled.slots, pooled.order))

    def choose_near(self, affinity: CallAffinity) -> PooledContainer | None:
        """`choose` for a call of an engine, which will be granted."""
        pool = self._open.values()
        if not pool:
            return None
        least = min(pooled.load for pooled in pool)
        near = [pooled for pooled in pool if pooled.load <= least + CROWDED]
        chosen = max(
            near,
            key=lambda pooled: (
                _worth(pooled, affinity), pooled.slots - pooled.used, -pooled.pressure, -pooled.order,
            ),
        )  # fmt: skip
        if chosen.affinities is None:
            chosen.affinities = RecentAffinities()
        chosen.affinities.note(affinity)
        return chosen

    def reserve(self, pooled: PooledContainer, call_id: str, at: float) -> None:
        pooled.pending[call_id] = at
        pooled.batch_room -= 1
        if pooled.breaker is not None and pooled.breaker.state is CircuitState.HALF_OPEN:
            pooled.breaker.send(call_id, at)
        self._recount(pooled)

    def is_pending(self, container: str, call_id: str) -> bool:
        """Whether no credit has listed the grant yet."""
        pooled = self._containers.get(container)
        return pooled is not None and call_id in pooled.pending

    def release(self, container: str, call_id: str) -> None:
        pooled = self._containers.get(container)
        if pooled is not None:
            pooled.pending.pop(call_id, None)
            pooled.held.pop(call_id, None)
            if pooled.shut is Refusal.NO_SLOT:
                pooled.shut = None
            self._recount(pooled)

    def ended(self, container: str, call_id: str, tenant: str, found: ContainerVerdict, at: float) -> None:
        """Count the end of a call at the breaker of its container."""
        if found is ContainerVerdict.FINE and not self._failing:
            self._note_fine(tenant, at)
            return
        pooled = self._containers.get(container)
        if pooled is not None and (
            pooled.breaker is not None or found in (ContainerVerdict.RAISED, ContainerVerdict.LATE)
        ):
            breaker = pooled.breaker = pooled.breaker or ContainerBreaker()
            self._failing = True
            breaker.note(found, call_id, tenant, self._fine, at)
            if breaker.state is CircuitState.CLOSED:
                self._broken.pop(container, None)
            else:
                self._broken[container] = pooled
            self._recount(pooled)
        if found is ContainerVerdict.FINE:
            self._note_fine(tenant, at)

    def _note_fine(self, tenant: str, at: float) -> None:
        self._fine[tenant] = at
        if len(self._fine) > CALLERS_AT_MOST:
            self._fine = {tenant: at}  # the next calls fill it again

    def inherit(self, container: str, breaker: ContainerBreaker, at: float) -> None:
        """Keep the breaker of a former home until the first credit of the container."""
        self._inherited[container] = breaker
        self._inherited_until = at + FORGET_AFTER_S

    def probe(self, at: float) -> None:
        """Half-open the breakers whose pause is over."""
        for pooled in self._broken.values():
            if pooled.breaker is not None and pooled.breaker.try_again(at):
                self._recount(pooled)

    def broken(self) -> list[PooledContainer]:
        return list(self._broken.values())

    def refuse(self, container: str, call_id: str, reason: Refusal, at: float = 0.0) -> None:
        """The container refused the call. If the reason concerns the container, it gets none until its next credit.

        The bus reports GONE too if no agent listens: then all containers of the node become unusable.
        """
        pooled = self._containers.get(container)
        if pooled is None:
            return
        pooled.pending.pop(call_id, None)
        if pooled.breaker is not None:
            pooled.breaker.withdrawn(call_id, at)
        if reason in CLOSING:
            pooled.shut = reason
        self._recount(pooled)
        if reason is Refusal.GONE and all(
            r.credit_at < at - HEARTBEAT_S for r in self._containers.values() if r.node == pooled.node
        ):
            self.quarantine_node(pooled.node)

    def quarantine_node(self, node: str) -> None:
        """The bus has no listener at a node: its containers are unusable until their next credit."""
        for pooled in self._containers.values():
            if pooled.node == node and pooled.container not in self._quarantined:
                self._quarantined[pooled.container] = pooled
                self._recount(pooled)

    def quarantine(self, at: float) -> None:
        """Stop using containers without a recent credit."""
        for pooled in self._containers.values():
            if pooled.credit_at >= at - QUARANTINE_AFTER_S:
                break
            if pooled.container not in self._quarantined:
                self._quarantined[pooled.container] = pooled
                self._recount(pooled)

    def gone(self, node: str, instance: str) -> tuple[str, ...]:
        """An incarnation of a node is gone; returns the calls that its containers had."""
        calls: tuple[str, ...] = ()
        for pooled in [r for r in self._containers.values() if (r.node, r.instance) == (node, instance)]:
            calls += self._drop(pooled)
        return calls

    def forget_silent(self, at: float) -> tuple[str, ...]:
        """Forget containers without a credit for long; returns the calls that they had."""
        if self._inherited and at >= self._inherited_until:
            self._inherited.clear()
        calls: tuple[str, ...] = ()
        for pooled in list(self._containers.values()):
            if pooled.credit_at >= at - FORGET_AFTER_S:
                break
            calls += self._drop(pooled)
        return calls

    def _drop(self, pooled: PooledContainer) -> tuple[str, ...]:
        calls = (*pooled.held, *pooled.pending)
        pooled.state = ContainerState.GONE
        self._recount(pooled)
        del self._containers[pooled.container]
        self._quarantined.pop(pooled.container, None)
        self._broken.pop(pooled.container, None)
        return calls

    def _recount(self, pooled: PooledContainer) -> None:
        slots, used, capacity = sums = pooled.sums(pooled.container in self._quarantined)
        was = pooled.counted
        if sums != was:
            self.slots += slots - was[0]
            self.used += used - was[1]
            self.capacity += capacity - was[2]
            pooled.counted = sums
        if pooled.spare or pooled.counted_spare:
            spare = min(pooled.spare, max(0, slots - 1))  # a single one is for everybody
            self.spare += spare - pooled.counted_spare
            pooled.counted_spare = spare
        if used < slots:
            self._open[pooled.container] = pooled
        else:
            self._open.pop(pooled.container, None)
        if pooled.state in STARTING:
            self._starting[pooled.container] = pooled
        elif self._starting:
            self._starting.pop(pooled.container, None)

    def check_integrity(self) -> None:
        sums = {r.container: r.sums(r.container in self._quarantined) for r in self._containers.values()}
        require(self.slots == sum(slots for slots, _, _ in sums.values()), "slots are miscounted")
        require(self.used == sum(used for _, used, _ in sums.values()), "used slots are miscounted")
        require(self.capacity == sum(capacity for _, _, capacity in sums.values()), "capacity is miscounted")
        require(self.spare == sum(pooled.counted_spare for pooled in self._containers.values()), "spare slots")
        require(
            set(self._open) == {c for c, (slots, used, _) in sums.items() if used < slots},
            "open containers are miscounted",
        )
        require(
            set(self._starting) == {r.container for r in self._containers.values() if r.state in STARTING}, "starts"
        )
        require(set(self._broken) <= set(self._containers), "a breaker of nothing")
        for pooled in self._containers.values():
            require(not set(pooled.held) & set(pooled.pending), "a call is held and pending")


def _worth(pooled: PooledContainer, affinity: CallAffinity) -> tuple[bool, int]:
    return pooled.affinities.worth(affinity) if pooled.affinities is not None else (False, 0)
