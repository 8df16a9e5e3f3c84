"""What a home has learnt of its versions, as it is handed over in a planned move. Instants do not travel."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.messages.scheduling import BreakerState, VersionState
from pilotlight_gateway.home.breakers import Breaker, CircuitState, ContainerBreaker, LossBreaker
from pilotlight_gateway.home.version_queue import VersionQueue

VERSIONS_AT_MOST = 256
"""Of one shard, those used last: some 50 KiB. The queue has to fit beside them."""
REASON_CHARS = 300


def learnt_state(version_queues: Iterable[VersionQueue], at: float) -> dict[str, VersionState]:
    """What was learnt of the versions that were used last."""
    known = [
        version_queue
        for version_queue in version_queues
        if version_queue.function and (version_queue.service_time.calls or version_queue.losses.everybody.failures)
    ]
    known.sort(key=lambda version_queue: version_queue.used_at, reverse=True)
    return {version_queue.version: _state_of(version_queue, at) for version_queue in known[:VERSIONS_AT_MOST]}


def restore(version_queue: VersionQueue, state: VersionState, at: float) -> None:
    """Go on from that; nothing is known yet of the version here."""
    version_queue.tenant = state.tenant
    service_time = version_queue.service_time
    service_time.calls, service_time.hold_ms, service_time.spread_ms, service_time.cost = (
        state.calls,
        state.hold_ms,
        state.spread_ms,
        state.cost,
    )
    version_queue.pool.start_ms = state.start_ms
    if state.breaker is not None:
        _restore_loss(version_queue.losses.everybody, state.breaker, at)
    for tenant, stored in state.tenants.items():
        _restore_loss(version_queue.losses.breaker_of(tenant), stored, at)
    version_queue.losses.row = state.lost
    for container, stored in state.containers.items():
        breaker = ContainerBreaker()
        _restore(breaker, stored, at)
        version_queue.pool.inherit(container, breaker, at)


def _state_of(version_queue: VersionQueue, at: float) -> VersionState:
    service_time, losses = version_queue.service_time, version_queue.losses
    return VersionState(
        function=version_queue.function,
        tenant=version_queue.tenant,
        calls=service_time.calls,
        hold_ms=service_time.hold_ms,
        spread_ms=service_time.spread_ms,
        cost=service_time.cost,
        start_ms=version_queue.pool.start_ms,
        breaker=_loss_state(losses.everybody, at) if losses.everybody.failures else None,
        tenants={tenant: _loss_state(breaker, at) for tenant, breaker in losses.tenants.items()},
        lost=losses.row,
        containers={
            pooled.container: _breaker_state(pooled.breaker, at)
            for pooled in version_queue.pool.broken()
            if pooled.breaker is not None
        },
    )


def _breaker_state(breaker: Breaker, at: float, reason: str = "") -> BreakerState:
    return BreakerState(
        state=breaker.state.value,
        failures=breaker.failures,
        trips=breaker.trips,
        left=max(0.0, breaker.until - at) if breaker.state is not CircuitState.CLOSED else 0.0,
        probe=breaker.probe,
        reason=reason[:REASON_CHARS],
    )


def _loss_state(breaker: LossBreaker, at: float) -> BreakerState:
    return _breaker_state(breaker, at, breaker.reason)


def _restore(breaker: Breaker, state: BreakerState, at: float) -> None:
    breaker.state, breaker.failures, breaker.trips = CircuitState(state.state), state.failures, state.trips
    breaker.until, breaker.probe = at + state.left, state.probe


def _restore_loss(breaker: LossBreaker, state: BreakerState, at: float) -> None:
    _restore(breaker, state, at)
    breaker.reason = state.reason
