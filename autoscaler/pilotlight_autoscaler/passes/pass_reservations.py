"""Devices reserved for the version that has waited longest: before a pass, in it, and after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.policy.shares import LAST, TenantShares
from pilotlight_autoscaler.policy.version_reservation import VersionReservation, WaitingVersion, next_reservation
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.plan.plan import Shortfall
from pilotlight_placement.plan.reservation import Reservation, missing_host


def current_reservation(state: PassState) -> Reservation | None:
    """The reservation, as long as calls of its version wait."""
    reservation = state.world.reservation
    if reservation is None or reservation.version not in state.views:
        return None
    demand = state.views[reservation.version].demand
    waited_for = demand is not None and demand.waiting
    return replace(reservation.kept, ask=state.ask(reservation.version)) if waited_for else None


def drain_reserved(state: PassState, kept: Reservation) -> None:
    """Drain idle containers on reserved devices and on hosts that are short, even if that is not enough yet."""
    places = state.fleet.places
    short = {name for name in kept.nodes if name in places and missing_host(places[name], kept.ask)}
    nodes = {places[name].rank for name in kept.nodes if name in places}
    for container, version in state.idle.on_nodes(state.fleet, nodes, waited_for=True):
        held = state.fleet.held.get(container.id)
        on = {(held.slice.node, name) for name in held.slice.ids} if held is not None else set()
        in_the_way = on & kept.devices or any(node in short for node, _ in on)
        if in_the_way and container.id not in state.leaving:
            state.drain(container.id, state.versions[version], f"its place is kept for {kept.ask.function}")


def reservation_after(
    state: PassState,
    decided: Collection[str],
    shorts: Sequence[Shortfall],
    asks: Mapping[Ask, list[str]],
    shares: TenantShares,
) -> VersionReservation | None:
    """The next reservation, for one of the tenants whose turn it is: nobody has devices kept beyond its share.

    A pass that has not `decided` on its version, since nothing is new of it, leaves it as it is.
    """
    now = state.world.reservation
    if now is not None and now.version in state.world.refusals and now.version not in decided:
        return now
    tenants = {short.refusal.record.ask.tenant for short in shorts if not short.refusal.never}
    first = min(map(shares.turn, tenants), default=LAST)
    waiting = []
    for short in shorts:
        ask = short.refusal.record.ask
        demand = state.views[asks[ask][0]].demand
        if not short.refusal.never and demand is not None and demand.waiting and shares.turn(ask.tenant) <= first:
            waiting.append(WaitingVersion(version=asks[ask][0], ask=ask, waited_s=demand.oldest_ms / 1000.0))
    return next_reservation(state.world.reservation, waiting, state.fleet, state.at)
