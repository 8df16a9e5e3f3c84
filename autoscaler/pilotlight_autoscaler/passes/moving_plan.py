"""The plan of a pass that may move containers, after the plain one has left versions without a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pilotlight_autoscaler.observations.container_index import LIVE
from pilotlight_autoscaler.passes.missing_containers import AskCounts, within
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_core.model.messages.node_messages import UNPARKED
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.plan.draft import DesiredFunction
from pilotlight_placement.plan.plan import DesiredState, Plan, Shortfall, plan
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
    desired = DesiredState(
        wants=(),
        others=partial(_movable, state),
        starts=within(starts, counts),
        epoch=state.given.epoch,
        fixed=FixedContainers(state=state),
        waiting=frozenset(tenant for tenant in tenants if not moves.allows(state.at, tenant)),
        kept=kept,
    )
    return plan(state.fleet, desired, state.at, limits)


@dataclass(frozen=True, kw_only=True)
class FixedContainers:
    """The containers that are not moved: those that come, go or are replaced, or that two nodes report."""

    state: PassState

    def __contains__(self, container: object) -> bool:
        world = self.state.world
        there = world.index.get(container) if isinstance(container, str) else None
        if there is None or there.state not in LIVE:
            return True
        return there.id in self.state.leaving or there.id in world.draining or there.id in world.replacing


def _movable(state: PassState, function: str) -> DesiredFunction | None:
    """How a function's containers may be moved, which are all of one version; they stay as many."""
    index = state.world.index
    names = [name for name in state.functions.versions_of(function) if any(index.of(name))]
    if len(names) != 1:
        return None
    timelines = (found.report.timeline for found in index.of(names[0]))
    load_s = max([sum(each.values()) / 1000.0 for each in timelines if UNPARKED not in each], default=0.0)
    return DesiredFunction(ask=state.ask(names[0]), count=None, load_s=load_s or LOAD_S, movable=True)
