"""Which nodes of a pool go: those that have drifted, and empty ones, the dearest first. Pure.

Nothing goes that would take what waits for a place, nor below the pool's least, nor beyond its disruption budgets. All
nodes of a pool that its operator drains go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pilotlight_autoscaler.policy.nodes.disruption import may_go
from pilotlight_autoscaler.policy.nodes.machine_capacity import capacity_for
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_core.model.api.pools.pool_terms import DisruptionReason
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState
from pilotlight_placement.asks.ask import Ask

DRAINED = "its pool is drained"
WORDS = {
    DisruptionReason.EMPTY: "it had no containers for {0:.0f} s",
    DisruptionReason.DRIFTED: "its pool was changed since it was launched",
}


@dataclass(frozen=True, kw_only=True)
class PoolNode:
    """A node that is up, with its machine. `empty_since`: unix seconds; None: containers are on it, or come."""

    launch: LaunchRecord
    empty_since: float | None = None


def surplus_nodes(
    view: PoolView, nodes: Iterable[PoolNode], waiting: Iterable[Ask], at: float, *, spares: int = 0
) -> list[tuple[LaunchRecord, str]]:
    """The machines that go, and why. `waiting`: what has no place now; `spares`: so many stand by beyond the least."""
    up = [each for each in nodes if each.launch.state is LaunchState.UP]
    if not view.record.is_open:
        return [(each.launch, DRAINED) for each in up]
    terms, asks = view.record.terms, list(waiting)
    going = sum(each.is_going for each in view.launches)
    found: list[tuple[LaunchRecord, str]] = []
    for reason, each in _candidates(view, up, asks, at):
        left = len(up) - len(found)  # those that come may never be there
        allowed = may_go(terms.budgets, reason, nodes=len(view.launches), going=going + len(found), at=at)
        if allowed > 0 and (left > terms.least_nodes + spares or reason is DisruptionReason.DRIFTED):
            since = at - each.empty_since if each.empty_since is not None else 0.0
            found.append((each.launch, WORDS[reason].format(since)))
    return found


def _candidates(
    view: PoolView, up: list[PoolNode], asks: list[Ask], at: float
) -> Iterator[tuple[DisruptionReason, PoolNode]]:
    terms = view.record.terms
    drifted = [each for each in up if each.launch.digest != terms.digest_of(each.launch.type)]
    yield from ((DisruptionReason.DRIFTED, each) for each in drifted)
    after_s = terms.consolidate_after_s
    empty = [
        each for each in up if each.empty_since is not None and at - each.empty_since >= after_s and each not in drifted
    ]
    for each in sorted(empty, key=lambda one: (-one.launch.usd_per_hour, one.launch.made_at, one.launch.id)):
        type_ = view.type_named(each.launch.type)
        if type_ is None or not any(capacity_for(ask, view, type_, each.launch.zone) for ask in asks):
            yield DisruptionReason.EMPTY, each
