"""What a home reports to metrics and controllers: counts, breakers and slowdowns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.scheduling import (
    FLOWS_TOLD,
    QUEUES_TOLD,
    BreakerReport,
    FlowLoad,
    QueueLoad,
    SlowFlowLoad,
)
from pilotlight_gateway.home.breakers import Breaker, CircuitState
from pilotlight_gateway.home.container_pool import STARTING
from pilotlight_gateway.home.slowdown import SlowFlow
from pilotlight_gateway.home.version_queue import VersionQueue

LONGEST_REASON = 300
SLOWED = 2.0
"""Flows that are slowed down by so much are told to all gateways."""


class HomeLoads(NamedTuple):
    """What other gateways are told of the queues here."""

    queued: int
    queues: tuple[QueueLoad, ...]
    left: int
    """Versions with calls that are not among them."""
    slow: tuple[SlowFlowLoad, ...]


@dataclass(frozen=True, kw_only=True)
class BreakerCounts:
    versions: int = 0
    tenants: int = 0
    """Breakers of one tenant's calls to a version."""
    containers: int = 0

    @classmethod
    def of(cls, queues: Iterable[VersionQueue]) -> BreakerCounts:
        versions = tenants = containers = 0
        for queue in queues:
            versions += queue.losses.everybody.state is not CircuitState.CLOSED
            tenants += sum(breaker.state is not CircuitState.CLOSED for breaker in queue.losses.tenants.values())
            containers += len(queue.pool.broken())
        return cls(versions=versions, tenants=tenants, containers=containers)


@dataclass(frozen=True, kw_only=True)
class HomeStatistics:
    """Queued calls, grants without an end, known containers, versions, and versions lost to a newer home."""

    queued: int
    oldest_ms: float
    granted: int
    containers: int
    versions: int
    deposed: int
    shed: dict[int, int] = field(default_factory=dict)
    """Rank of a tier -> its calls that were shed so far."""
    breakers: BreakerCounts = field(default_factory=BreakerCounts)
    slowdown: dict[str, float] = field(default_factory=dict)
    """Class -> the largest slowdown of a flow."""
    slow: tuple[SlowFlow, ...] = ()
    """Flows that other tenants slow down; any is an alert."""


def statistics_of(
    queues: Collection[VersionQueue], *, queued: int, granted: int, shed: Mapping[int, int], at: float
) -> HomeStatistics:
    """The statistics of a home of these versions, with its waiting, granted and shed calls."""
    oldest = min((since for queue in queues if (since := queue.calls.oldest()) is not None), default=at)
    return HomeStatistics(
        queued=queued,
        oldest_ms=max(0.0, at - oldest) * 1000.0,
        granted=granted,
        containers=sum(len(queue.pool.all()) for queue in queues),
        versions=len(queues),
        deposed=sum(queue.pool.deposed for queue in queues),
        shed=dict(shed),
        breakers=BreakerCounts.of(queues),
        slowdown=worst_of(queue.slowdowns.worst() for queue in queues),
        slow=tuple(slow for queue in queues for slow in queue.slow()),
    )


def loads_of(queues: Iterable[VersionQueue], at: float) -> HomeLoads:
    """The versions whose calls have waited for longest, of those that have any, and the flows of these that are slowed
    down: nobody looks at what is idle, of which there may be ten thousand."""
    busy = [queue for queue in queues if queue.calls or queue.pool.running() or queue.refused_at is not None]
    order = sorted(busy, key=lambda queue: at if (since := queue.calls.oldest()) is None else since)
    slow = sorted((flow for queue in busy for flow in queue.slow(SLOWED)), key=lambda flow: -flow.slowdown)
    return HomeLoads(
        queued=sum(len(queue.calls) for queue in busy),
        queues=tuple(_load_of(queue, at) for queue in order[:QUEUES_TOLD]),
        left=max(0, len(busy) - QUEUES_TOLD),
        slow=tuple(
            SlowFlowLoad(
                version=one.version, function=one.function, tenant=one.tenant, priority=one.priority,
                slowdown=one.slowdown, calls=one.calls, neighbour=one.neighbour, held_part=one.held_part,
                neighbour_part=one.neighbour_part, mean_ms=one.mean_ms,
            )
            for one in slow[:QUEUES_TOLD]
        ),
    )  # fmt: skip


def _load_of(queue: VersionQueue, at: float) -> QueueLoad:
    oldest, pool, flows = queue.calls.oldest(), queue.pool, queue.calls.waiting_flows()
    told = [
        FlowLoad(tenant=tenant, priority=name, queued=count, oldest_ms=max(0.0, at - since) * 1000.0)
        for tenant, name, count, since in sorted(flows, key=lambda flow: flow[3])[:FLOWS_TOLD]
    ]
    states = [pooled.state for pooled in pool.all()]
    return QueueLoad(
        version=queue.version,
        function=queue.function,
        queued=len(queue.calls),
        oldest_ms=max(0.0, at - oldest) * 1000.0 if oldest is not None else 0.0,
        running=pool.running(),
        slots=pool.slots,
        ready=sum(state is ContainerState.READY for state in states),
        starting=sum(state in STARTING for state in states),
        service_ms=queue.service_time.hold_ms or 0.0,
        shortage=queue.shortage_now(at)[:LONGEST_REASON],
        failed_starts=queue.load_errors,
        breaker=queue.losses.everybody.state.value,
        flows=tuple(told),
        flows_left=max(0, len(flows) - FLOWS_TOLD),
    )


class HomeVersionLoad(NamedTuple):
    """What is there of one version at an instant."""

    function: str
    version: str
    queued: int
    running: int
    ready: int
    starting: int
    busy: int
    """Ready containers that hold a call."""
    slots: int
    is_short: bool
    """Whether the controller has lately said that there is no room for another container."""
    has_room: bool
    """Whether a call could be granted: if any waits then, the home breaks its own law."""
    oldest_ms: float


def version_loads_of(queues: Iterable[VersionQueue], at: float) -> Iterator[HomeVersionLoad]:
    """Of each version that has calls or containers."""
    for queue in queues:
        pooled, queued = queue.pool.all(), len(queue.calls)
        if not queue.function or not (pooled or queued):
            continue
        ready = [each for each in pooled if each.state is ContainerState.READY]
        oldest = queue.calls.oldest()
        yield HomeVersionLoad(
            queue.function,
            queue.version,
            queued,
            sum([each.used for each in pooled]),
            len(ready),
            sum([each.state in STARTING for each in pooled]),
            sum([each.used > 0 for each in ready]),
            sum([each.slots for each in ready]),
            queue.shortage_now(at) != "",
            queue.pool.free > 0,
            max(0.0, at - oldest) * 1000.0 if oldest is not None else 0.0,
        )


def breakers_of(queue: VersionQueue, at: float) -> Iterator[BreakerReport]:
    """The breakers of one version that are not closed or count failures."""
    if queue.losses.everybody.failures:
        yield _report_of(queue.losses.everybody, at, version=queue.version)
    for tenant, breaker in queue.losses.tenants.items():
        yield _report_of(breaker, at, version=queue.version, tenant=tenant)
    for pooled in queue.pool.all():
        if pooled.breaker is not None and pooled.breaker.failures:
            yield _report_of(pooled.breaker, at, version=queue.version, container=pooled.container)


def worst_of(found: Iterable[dict[str, float]]) -> dict[str, float]:
    """The largest value of each key."""
    worst: dict[str, float] = {}
    for values in found:
        for key, value in values.items():
            worst[key] = max(worst.get(key, value), value)
    return worst


def _report_of(breaker: Breaker, at: float, *, version: str, container: str = "", tenant: str = "") -> BreakerReport:
    return BreakerReport(
        version=version,
        container=container,
        tenant=tenant,
        state=breaker.state.value,
        failures=breaker.failures,
        retry_after=max(0.0, breaker.until - at) if breaker.state is CircuitState.OPEN else 0.0,
    )
