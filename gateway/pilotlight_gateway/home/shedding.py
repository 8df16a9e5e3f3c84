"""Shedding: which queued calls leave when the remaining capacity cannot serve the queue in time.

The wait of each call is estimated as at its admission. A call that cannot meet its deadline any more is *doomed*, and
leaves now with the time of its turn as Retry-After. Lower tiers give way first: while a doomed call of a higher tier
competes with calls of lower tiers, those leave instead (the doomed ones of the lowest tier, then its youngest), as many
as the higher call needs to be in time.

Waits are computed on a grid of positions and interpolated, which takes a few microseconds per waiting call.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pilotlight_gateway.home.call_admission import MARGIN, ServiceTime, calls_before_class, wait_ms
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.queue import LEAST_COST, FairQueue
from pilotlight_gateway.home.tier_queue import QueueEntry, TierQueue


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A waiting call, the number of calls before it in its flow, and its wait."""

    entry: QueueEntry
    before: int
    wait_ms: float
    late_ms: float
    """How far the call misses its deadline; 0 or less: it is in time."""


@dataclass(frozen=True, slots=True)
class _Waits:
    """The waits of one tier queue by position, for a flow like its next one."""

    places: list[float]
    waits: list[float]
    value: float
    step: float
    """One position in units of the counter."""

    def at(self, place: float) -> float:
        """Interpolate."""
        upper = min(bisect_left(self.places, place), len(self.places) - 1)
        if upper == 0 or place >= self.places[upper]:
            return self.waits[upper]
        low, high = self.places[upper - 1], self.places[upper]
        part = (place - low) / (high - low)
        return self.waits[upper - 1] + part * (self.waits[upper] - self.waits[upper - 1])


def shed(queue: FairQueue, pool: ContainerPool, service_time: ServiceTime, at: float) -> list[tuple[QueueEntry, float]]:
    """The calls that should leave the queue now, each with its expected wait in milliseconds.

    Nothing is shed while the wait is unknown.
    """
    tier_queues: defaultdict[int, list[tuple[TierQueue, _Waits]]] = defaultdict(list)
    doomed: defaultdict[int, list[QueuePosition]] = defaultdict(list)
    for class_queue in queue.classes:
        for tier_queue in class_queue.tier_queues:
            if tier_queue.flows:
                waits = _waits(queue, tier_queue, pool, service_time, at)
                if waits is None:
                    return []
                tier_queues[tier_queue.tier.rank].append((tier_queue, waits))
                doomed[tier_queue.tier.rank] += _places(tier_queue, waits, service_time, at, doomed=True)
    slots_per_ms = max(1, pool.capacity) / max(service_time.hold_ms or 0.0, 1e-3)
    victims: list[QueuePosition] = []
    for rank in sorted(tier_queues):
        victims += doomed.pop(rank)
        late = max((place.late_ms for higher in doomed.values() for place in higher), default=0.0)
        missing = math.ceil(late * slots_per_ms) - len(victims) if late > 0 else 0
        if missing <= 0:
            break
        others = [
            p
            for tier_queue, waits in tier_queues[rank]
            for p in _places(tier_queue, waits, service_time, at, doomed=False)
        ]
        others.sort(key=lambda place: (-place.before, -place.entry.order))
        victims += others[:missing]
        if len(others) > missing:
            break
    return [(place.entry, place.wait_ms) for place in victims]


def _places(
    tier_queue: TierQueue, waits: _Waits, service_time: ServiceTime, at: float, *, doomed: bool
) -> Iterator[QueuePosition]:
    """The calls of a tier queue that are doomed, or those that are not."""
    service, part = service_time.service_ms, 1.0 - MARGIN
    for flow in tier_queue.flows.values():
        counter = flow.counter
        start = max(0.0, counter.value - waits.value) / waits.step
        step = max(flow.cost, LEAST_COST) / counter.weight / waits.step
        place = 0
        for entry in flow:
            if entry.waiting:
                wait = waits.at(start + place * step)
                late = wait * part + service - (entry.leaves_at - at) * 1000.0 if wait else 0.0
                if (late > 0.0) is doomed:
                    yield QueuePosition(entry, place, wait, late)
                place += 1


def _waits(
    queue: FairQueue, tier_queue: TierQueue, pool: ContainerPool, service_time: ServiceTime, at: float
) -> _Waits | None:
    first = next(iter(tier_queue.flows.values()))
    head = tier_queue.head() or first
    value, step = head.counter.value, max(head.cost, LEAST_COST) / head.counter.weight
    kept = queue.kept(tier_queue.tier.rank, pool.slots, at) + pool.spare
    places: list[float] = []
    waits: list[float] = []
    longest = max(flow.live for flow in tier_queue.flows.values())
    last = (max(f.counter.value for f in tier_queue.flows.values()) - value) / step + longest * _steepest(
        tier_queue, step
    )
    place = 0.0
    while True:
        # The flow itself is counted too, but its call is not before itself; and one more slot may become free at any
        # moment. A call leaves only if it would be too late even then.
        calls = (
            max(0.0, calls_before_class(queue, tier_queue.class_queue, value + place * step, service_time.cost) - 1.0)
            - 1.0
        )
        wait = wait_ms(calls, pool, service_time, at, kept=kept)
        if wait is None:
            return None
        places.append(place)
        waits.append(wait)
        if place >= last:
            return _Waits(places, waits, value, step)
        place = min(last, max(1.0, place * 1.5))


def _steepest(tier_queue: TierQueue, step: float) -> float:
    return max(max(flow.cost, LEAST_COST) / flow.counter.weight for flow in tier_queue.flows.values()) / step
