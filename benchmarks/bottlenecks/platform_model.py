"""A platform in virtual time: callers, gateways' threads, one fair queue, containers that batch, one link for bodies.

It counts what a platform counts, and no more: the diagnosis sees the tallies that are made of it.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.bottlenecks.plants import Plant, PlantedTenant
from pilotlight_gateway.diagnosis.diagnosis_window import STAGES

TICK_S = 0.25
"""Between two looks of its autoscaler."""
BREAKER_AFTER, BREAKER_S = 3, 5.0
"""Containers lost in a row after which calls are refused, and for how long."""


@dataclass(eq=False, slots=True)
class ModelCall:
    tenant: PlantedTenant
    came: float
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    mark: float = 0.0
    unready: float = 0.0
    granted: float = 0.0
    size: int = 1


@dataclass(eq=False, slots=True)
class ModelContainer:
    ready: bool = False
    gone: bool = False
    held: int = 0
    busy: bool = False
    forming: list[ModelCall] = field(default_factory=list)
    since: float = 0.0


@dataclass(slots=True)
class AloneClock:
    """A tenant's calls as if it were alone, as `Slowdowns` keeps it."""

    at: float = 0.0
    system_s: float = 0.0
    alone_s: float = 0.0
    held_s: float = 0.0
    ran_s: float = 0.0
    ended: int = 0


class PlatformModel:
    """One run of a plant."""

    def __init__(self, plant: Plant, seed: int = 1) -> None:
        self.plant, self.random, self.now, self.numbers = plant, random.Random(seed), 0.0, 0
        self.events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.queues: dict[str, deque[ModelCall]] = {each.name: deque() for each in plant.tenants}
        self.served = dict.fromkeys(self.queues, 0.0)
        self.flying: Counter[str] = Counter()
        self.tokens = {each.name: [max(1.0, min(1e9, each.per_s) * 0.2), 0.0] for each in plant.tenants}
        self.spent: Counter[str] = Counter()
        self.loops_free = [0.0] * plant.gateways
        self.link_free = 0.0
        ready = 0 if plant.starts_fail else plant.containers
        self.containers = [ModelContainer(ready=True) for _ in range(ready)]
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.done: list[ModelCall] = []
        self.failed: Counter[str] = Counter()
        self.batches: list[tuple[int, float]] = []
        self.left_s = 0.0
        """Of all calls that are over, the time that they took."""
        self.busy_s = self.cpu_s = self.throttled_s = 0.0
        self.starts = self.failed_starts = self.idle_ends = self.died = self.lost_row = 0
        self.arrivals = self.inside = self.most_wanted = 0
        self.short = False
        self.refused_full = False
        self.breaker_until = -1.0
        self.alone = {each.name: AloneClock() for each in plant.tenants}

    def run(self) -> PlatformModel:
        """Run it to the end of its window."""
        for tenant in self.plant.tenants:
            for _ in range(tenant.callers):
                self._at(self.random.random() * 0.01, self._arrive, tenant)
            if tenant.rate:
                self._at(0.0, self._next_open, tenant)
        self._at(0.0, self._tick)
        while self.events and self.events[0][0] <= self.plant.seconds:
            at, _, what, args = heapq.heappop(self.events)
            self._account(at - self.now)
            self.now = at
            what(*args)
        self._account(self.plant.seconds - self.now)
        return self

    def _at(self, when: float, what: Callable[..., None], *args: Any) -> None:
        self.numbers += 1
        heapq.heappush(self.events, (when, self.numbers, what, args))

    def _account(self, passed: float) -> None:
        """Add what holds now to the integrals over time."""
        live = [each for each in self.containers if not each.gone]
        ready = sum(each.ready for each in live)
        free = any(each.held < self.plant.slots for each in live if each.ready)
        queued = sum(map(len, self.queues.values()))
        sums = self.sums
        sums["queued"] += queued * passed
        sums["ready"] += ready * passed
        sums["starting"] += (len(live) - ready) * passed
        sums["held"] += sum(each.held for each in live if each.ready) * passed
        sums["slots"] += ready * self.plant.slots * passed
        sums["inside"] += self.inside * passed
        sums["none"] += (ready == 0) * passed
        sums["idle_credit"] += (queued > 0 and free) * passed
        sums["shortage"] += self.short * passed

    # -- callers and the gateway ---------------------------------------------------------------------------------

    def _next_open(self, tenant: PlantedTenant) -> None:
        for _ in range(tenant.burst):
            self._arrive(tenant)
        self._at(self.now + self.random.expovariate(tenant.rate / tenant.burst), self._next_open, tenant)

    def _loop(self, cost: float) -> float:
        """When the least loaded gateway's thread is done with this."""
        place = min(range(len(self.loops_free)), key=lambda each: self.loops_free[each])
        self.loops_free[place] = max(self.now, self.loops_free[place]) + cost
        self.sums["loop"] += cost
        return self.loops_free[place]

    def _arrive(self, tenant: PlantedTenant) -> None:
        self.arrivals += 1
        self.inside += 1
        self._at(self._loop(self.plant.gateway_s * 2 / 3), self._admit, ModelCall(tenant, self.now))

    def _admit(self, call: ModelCall) -> None:
        tenant = call.tenant
        call.spent["gateway"] = self.now - call.came
        if code := self._refusal(tenant):
            self.failed[code] += 1
            self._leave(call, think_s=max(tenant.think_s, 1.0))
            return
        self.spent[tenant.name] += 1
        call.mark, call.unready = self.now, self.sums["none"]
        self.queues[tenant.name].append(call)
        self._dispatch()

    def _refusal(self, tenant: PlantedTenant) -> str:
        bucket = self.tokens[tenant.name]
        burst = max(1.0, min(1e9, tenant.per_s) * 0.2)
        bucket[0] = min(burst, bucket[0] + (self.now - bucket[1]) * min(1e9, tenant.per_s))
        bucket[1] = self.now
        if bucket[0] < 1.0:
            return "rate_limited"
        if self.spent[tenant.name] >= tenant.budget:
            return "budget_exhausted"
        if self.now < self.breaker_until:
            return "breaker_open"
        if len(self.queues[tenant.name]) >= self.plant.queue_most:
            self.refused_full = True
            return "queue_full"
        bucket[0] -= 1.0
        return ""

    def _dispatch(self) -> None:
        while True:
            waiting = [n for n, queue in self.queues.items() if queue and self.flying[n] < queue[0].tenant.in_flight]
            rooms = [each for each in self.containers if each.ready and not each.gone and each.held < self.plant.slots]
            if not waiting or not rooms:
                return
            name = min(waiting, key=lambda each: self.served[each])
            call = self.queues[name].popleft()
            self.served[name] += call.tenant.cost
            forming = [each for each in rooms if 0 < len(each.forming) < self.plant.batch]
            room = min(forming or rooms, key=lambda each: each.held)
            room.held += 1
            self.flying[name] += 1
            start = self.sums["none"] - call.unready
            call.spent["queue"], call.spent["start"] = self.now - call.mark - start, start
            call.granted = call.mark = self.now
            took = call.tenant.body_bytes / self.plant.bytes_per_s
            self.link_free = max(self.now, self.link_free) + took
            self.sums["link"] += took
            self._at(self.link_free + self.plant.bus_s, self._accept, call, room)

    # -- containers ----------------------------------------------------------------------------------------------

    def _accept(self, call: ModelCall, room: ModelContainer) -> None:
        call.spent["transport"] = self.now - call.mark
        call.mark = self.now
        room.forming.append(call)
        if not room.busy:
            self._due(room)

    def _due(self, room: ModelContainer) -> None:
        if room.busy or not room.forming:
            return
        left = room.forming[0].mark + self.plant.wait_s - self.now
        if len(room.forming) >= self.plant.batch or left <= 1e-9:
            self._begin(room)
        else:
            self._at(self.now + left, self._due, room)

    def _begin(self, room: ModelContainer) -> None:
        plant = self.plant
        batch, room.forming = room.forming[: plant.batch], room.forming[plant.batch :]
        took = (plant.fixed_s + plant.each_s * len(batch)) * max(each.tenant.cost for each in batch)
        took *= max(0.3, self.random.gauss(1.0, plant.spread))
        if plant.long_part and any(self.random.random() < plant.long_part for _ in batch):
            took *= plant.long_factor
        cpu = took * plant.cpu_part
        slow = max(1.0, plant.needs_cores / plant.cores)  # of its processors' work, for want of cores
        took += cpu * (slow - 1)
        self.cpu_s += cpu * min(plant.needs_cores, plant.cores) * slow if plant.cpu_part else 0.02 * took
        self.throttled_s += cpu * (slow - 1)
        room.busy = True
        self.batches.append((len(batch), took))
        for call in batch:
            call.spent["batch_wait"], call.spent["execute"] = self.now - call.mark, took
            call.size = len(batch)
        self._at(self.now + took + plant.unread_s, self._end, room, batch, took + plant.unread_s)

    def _end(self, room: ModelContainer, batch: list[ModelCall], took: float) -> None:
        room.busy, room.since = False, self.now
        self.busy_s += took
        if self.plant.deaths_per_call and self.random.random() < self.plant.deaths_per_call * len(batch):
            self._die(room, batch)
            return
        self.lost_row = 0
        room.held -= len(batch)
        for call in batch:
            call.spent["execute"] = took
            self.flying[call.tenant.name] -= 1
            self._follow(call)
            call.mark = self.now
            self._at(self._loop(self.plant.gateway_s / 3) + self.plant.bus_s, self._finish, call)
        self._due(room)
        self._dispatch()

    def _die(self, room: ModelContainer, batch: list[ModelCall]) -> None:
        room.gone = True
        self.died += 1
        self.lost_row += 1
        if self.lost_row >= BREAKER_AFTER:
            self.breaker_until, self.lost_row = self.now + BREAKER_S, 0
        for call in (*batch, *room.forming):
            self.flying[call.tenant.name] -= 1
            self.failed["container_died"] += 1
            self._leave(call, think_s=max(call.tenant.think_s, 1.0))

    def _follow(self, call: ModelCall) -> None:
        own, held = self.alone[call.tenant.name], self.now - call.granted
        slots = max(1, sum(each.ready and not each.gone for each in self.containers) * self.plant.slots)
        begun = max(call.came + call.spent["start"], own.at)
        own.at = begun + held / slots
        own.system_s += self.now - call.came
        own.alone_s += begun - call.came + held
        own.held_s += held
        own.ran_s += call.spent["execute"]
        own.ended += 1

    def _finish(self, call: ModelCall) -> None:
        call.spent["respond"] = self.now - call.mark
        self.done.append(call)
        self._leave(call, think_s=call.tenant.think_s)

    def _leave(self, call: ModelCall, think_s: float) -> None:
        self.inside -= 1
        self.left_s += self.now - call.came
        if call.tenant.callers:
            self._at(self.now + think_s, self._arrive, call.tenant)

    # -- the autoscaler ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        plant = self.plant
        live = [each for each in self.containers if not each.gone]
        waiting = sum(
            min(len(queue), queue[0].tenant.in_flight - self.flying[name])
            for name, queue in self.queues.items()
            if queue
        )
        most = min(plant.max_containers, plant.owner_limit or plant.max_containers)
        full = all(each.held >= plant.slots for each in live if each.ready)
        want = len(live)
        if waiting > 0 and full:
            want = min(most, len(live) + math.ceil(waiting / plant.slots))
        want = max(want, min(plant.min_containers, most))
        self.most_wanted = max(self.most_wanted, want)
        self.short = want > plant.fits and (self.short or waiting > 0)
        for _ in range(min(want, plant.fits) - len(live)):
            self._start()
        for room in live:
            idle = room.ready and not room.held and self.now - room.since > plant.idle_s
            if idle and len(live) > plant.min_containers:
                room.gone = True
                self.idle_ends += 1
                break
        self._at(self.now + TICK_S, self._tick)

    def _start(self) -> None:
        room = ModelContainer()
        self.containers.append(room)
        self.starts += 1
        self._at(self.now + self.plant.load_s, self._loaded, room)

    def _loaded(self, room: ModelContainer) -> None:
        if self.plant.starts_fail:
            room.gone = True
            self.failed_starts += 1
            for queue in self.queues.values():
                while queue:
                    self.failed["load_failed"] += 1
                    self._leave(queue.popleft(), think_s=1.0)
            if self.failed_starts >= BREAKER_AFTER:
                self.breaker_until = self.now + BREAKER_S
            return
        room.ready, room.since = True, self.now
        self._dispatch()
