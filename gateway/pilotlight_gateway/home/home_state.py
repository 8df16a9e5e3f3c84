"""What a home tells the next home of its shard: the calls that wait, their tenants' service, and what it has learnt of
its versions. Durations travel, instants do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotlight_core.model.messages.call_messages import CallDescriptor
from pilotlight_core.model.messages.scheduling import BreakerState, HomeState, VersionState
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.breakers import Breaker, CircuitState, ContainerBreaker, LossBreaker
from pilotlight_gateway.home.tier_queue import FunctionCounters
from pilotlight_gateway.home.version_queue import VersionQueue

VERSIONS_AT_MOST = 256
"""Versions of one shard, the last used: about 50 KiB, which leaves room for the queue."""
REASON_CHARS = 300


def state_of(
    calls: tuple[CallDescriptor, ...],
    counters: Mapping[str, FunctionCounters],
    queues: Iterable[VersionQueue],
    at: float,
) -> HomeState:
    """The state of a home. The counters are those of each function, by class."""
    return HomeState(
        calls=calls,
        counters={
            function: {priority.value: c.values() for priority, c in of_function.classes.items() if len(c)}
            for function, of_function in counters.items()
        },
        versions=_learnt_state(queues, at),
    )


def restore_counters(counters: FunctionCounters, values: Mapping[str, dict[str, float]]) -> None:
    """Restore the service of each tenant, by class, into the new counters of a function."""
    for priority, of_tenants in values.items():
        counters.classes[Priority(priority)].restore(of_tenants)


def _learnt_state(queues: Iterable[VersionQueue], at: float) -> dict[str, VersionState]:
    """The state of the versions that were used last."""
    known = [
        queue for queue in queues if queue.function and (queue.service_time.calls or queue.losses.everybody.failures)
    ]
    known.sort(key=lambda queue: queue.used_at, reverse=True)
    return {queue.version: _state_of(queue, at) for queue in known[:VERSIONS_AT_MOST]}


def restore_version(queue: VersionQueue, state: VersionState, at: float) -> None:
    """Restore the state into a new queue."""
    queue.tenant = state.tenant
    service_time = queue.service_time
    service_time.calls, service_time.hold_ms, service_time.spread_ms, service_time.cost = (
        state.calls,
        state.hold_ms,
        state.spread_ms,
        state.cost,
    )
    queue.pool.start_ms = state.start_ms
    if state.breaker is not None:
        _restore_loss(queue.losses.everybody, state.breaker, at)
    for tenant, stored in state.tenants.items():
        _restore_loss(queue.losses.breaker_of(tenant), stored, at)
    queue.losses.row = state.lost
    for container, stored in state.containers.items():
        breaker = ContainerBreaker()
        _restore(breaker, stored, at)
        queue.pool.inherit(container, breaker, at)


def _state_of(queue: VersionQueue, at: float) -> VersionState:
    service_time, losses = queue.service_time, queue.losses
    return VersionState(
        function=queue.function,
        tenant=queue.tenant,
        calls=service_time.calls,
        hold_ms=service_time.hold_ms,
        spread_ms=service_time.spread_ms,
        cost=service_time.cost,
        start_ms=queue.pool.start_ms,
        breaker=_loss_state(losses.everybody, at) if losses.everybody.failures else None,
        tenants={tenant: _loss_state(breaker, at) for tenant, breaker in losses.tenants.items()},
        lost=losses.row,
        containers={
            pooled.container: _breaker_state(pooled.breaker, at)
            for pooled in queue.pool.broken()
            if pooled.breaker is not None
        },
    )


def _breaker_state(breaker: Breaker, at: float, reason: str = "") -> BreakerState:
    return BreakerState(
        state=breaker.state.value,
        failures=breaker.failures,
        trips=breaker.trips,
        left_s=max(0.0, breaker.until - at) if breaker.state is not CircuitState.CLOSED else 0.0,
        probe=breaker.probe,
        reason=reason[:REASON_CHARS],
    )


def _loss_state(breaker: LossBreaker, at: float) -> BreakerState:
    return _breaker_state(breaker, at, breaker.reason)


def _restore(breaker: Breaker, state: BreakerState, at: float) -> None:
    breaker.state, breaker.failures, breaker.trips = CircuitState(state.state), state.failures, state.trips
    breaker.until, breaker.probe = at + state.left_s, state.probe


def _restore_loss(breaker: LossBreaker, state: BreakerState, at: float) -> None:
    _restore(breaker, state, at)
    breaker.reason = state.reason
