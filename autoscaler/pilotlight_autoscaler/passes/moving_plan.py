"""The plan of a pass that may move containers, after the plain one has left versions without a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pilotlight_autoscaler.observations.world import LIVE
from pilotlight_autoscaler.passes.missing_containers import AskCounts, within
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.version_views import function_of
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.plan.draft import DesiredFunction
from pilotlight_placement.plan.plan import DesiredState, Plan, Shortfall, living, plan
from pilotlight_placement.plan.reservation import Reservation

LOAD_S = 30.0
"""The cost of a move, if no start of its function was timed."""


def shortfalls_without(shorts: Sequence[Shortfall], others: Sequence[Shortfall]) -> list[Shortfall]:
    """The shortfalls that are not in `others`, by identity, which is faster than comparing asks."""
    known = {id(short) for short in others}
    return [short for short in shorts if id(short) not in known]


def plan_with_moves(
    state: PassState,
    starts: AskCounts,
    missing: Mapping[Ask, int],
    plain: Plan,
    blocked: Sequence[Shortfall],
    kept: Reservation | None,
) -> Plan:
    """The plan in which containers are moved for blocked versions, and devices emptied.

    `starts` are in the order in which they are made, `missing` says how many of each ask there are.
    """
    counts = dict(missing)
    for short in shortfalls_without(plain.short, blocked):
        counts[short.refusal.record.ask] -= short.missing  # a drain makes room for it
    limits = state.given.options.forceful
    moves = state.world.moves
    limits = replace(
        limits,
        moves=min(limits.moves, moves.left(state.at)),
        empties=limits.empties if moves.allows(state.at, "") else 0,
    )
    tenants = {short.refusal.record.ask.tenant for short in blocked}
    leaving = {each.id for _, each in state.world.containers(state.at) if each.state not in LIVE}
    # Exclude pending containers, those of executions, and those that two nodes report.
    fixed = leaving | state.leaving | state.world.draining.keys() | (state.fleet.held.keys() - state.world.index.ids())
    desired = DesiredState(
        wants=_movable(state),
        starts=within(starts, counts),
        epoch=state.given.epoch,
        fixed=frozenset(fixed),
        waiting=frozenset(tenant for tenant in tenants if not moves.allows(state.at, tenant)),
        kept=kept,
    )
    return plan(state.fleet, desired, state.at, limits)


def _movable(state: PassState) -> tuple[DesiredFunction, ...]:
    """Every function whose containers are all of one version, at its present count."""
    by_function: dict[str, set[str]] = {}
    loads: dict[str, float] = {}
    for _, container in state.world.containers(state.at):
        if (record := state.versions.get(container.version)) is None:
            continue
        function = function_of(record)
        by_function.setdefault(function, set()).add(container.version)
        timed = sum(container.timeline.values()) / 1000.0
        loads[function] = max(loads.get(function, 0.0), timed)
    return tuple(
        DesiredFunction(ask=state.ask(min(names)), count=None, load_s=loads[function] or LOAD_S, movable=True)
        for function, names in sorted(by_function.items())
        if len(names) == 1 and living(state.fleet, function)
    )
