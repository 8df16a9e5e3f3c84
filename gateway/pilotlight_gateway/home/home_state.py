"""What a home has learnt of its versions, as it is handed over in a planned move. Instants do not travel."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.messages.scheduling import BreakerState, VersionState
from pilotlight_gateway.home.breakers import Breaker, CircuitState, ContainerBreaker, LossBreaker
from pilotlight_gateway.home.version_queue import VersionQueue

VERSIONS_AT_MOST = 256
"""Of one shard, those used last: some 50 KiB. The queue has to fit beside them."""
REASON_CHARS = 300


def learnt_state(desks: Iterable[VersionQueue], at: float) -> dict[str, VersionState]:
    """What was learnt of the versions that were used last."""
    known = [desk for desk in desks if desk.function and (desk.pace.calls or desk.losses.everybody.failures)]
    known.sort(key=lambda desk: desk.used_at, reverse=True)
    return {desk.version: _state_of(desk, at) for desk in known[:VERSIONS_AT_MOST]}


def restore(desk: VersionQueue, state: VersionState, at: float) -> None:
    """Go on from that; nothing is known yet of the version here."""
    desk.tenant = state.tenant
    pace = desk.pace
    pace.calls, pace.hold_ms, pace.spread_ms, pace.cost = state.calls, state.hold_ms, state.spread_ms, state.cost
    desk.rooms.start_ms = state.start_ms
    if state.breaker is not None:
        _restore_loss(desk.losses.everybody, state.breaker, at)
    for tenant, told in state.tenants.items():
        _restore_loss(desk.losses.breaker_of(tenant), told, at)
    desk.losses.row = state.lost
    for container, told in state.containers.items():
        breaker = ContainerBreaker()
        _restore(breaker, told, at)
        desk.rooms.inherit(container, breaker, at)


def _state_of(desk: VersionQueue, at: float) -> VersionState:
    pace, losses = desk.pace, desk.losses
    return VersionState(
        function=desk.function,
        tenant=desk.tenant,
        calls=pace.calls,
        hold_ms=pace.hold_ms,
        spread_ms=pace.spread_ms,
        cost=pace.cost,
        start_ms=desk.rooms.start_ms,
        breaker=_told_loss(losses.everybody, at) if losses.everybody.failures else None,
        tenants={tenant: _told_loss(breaker, at) for tenant, breaker in losses.tenants.items()},
        lost=losses.row,
        containers={
            room.container: _told(room.breaker, at) for room in desk.rooms.broken() if room.breaker is not None
        },
    )


def _told(breaker: Breaker, at: float, reason: str = "") -> BreakerState:
    return BreakerState(
        state=breaker.state.value,
        failures=breaker.failures,
        trips=breaker.trips,
        left=max(0.0, breaker.until - at) if breaker.state is not CircuitState.CLOSED else 0.0,
        probe=breaker.probe,
        reason=reason[:REASON_CHARS],
    )


def _told_loss(breaker: LossBreaker, at: float) -> BreakerState:
    return _told(breaker, at, breaker.reason)


def _restore(breaker: Breaker, state: BreakerState, at: float) -> None:
    breaker.state, breaker.failures, breaker.trips = CircuitState(state.state), state.failures, state.trips
    breaker.until, breaker.probe = at + state.left, state.probe


def _restore_loss(breaker: LossBreaker, state: BreakerState, at: float) -> None:
    _restore(breaker, state, at)
    breaker.reason = state.reason
