"""How many of a pool's nodes may go now, by its budgets. Instants are unix seconds."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.api.pools.pool_terms import DisruptionBudget, DisruptionReason
from pilotlight_core.model.schedules.ticks import last_tick
from pilotlight_core.model.spec import Schedule


def may_go(budgets: Iterable[DisruptionBudget], reason: DisruptionReason, *, nodes: int, going: int, at: float) -> int:
    """How many more of `nodes`, of which some are `going` already; without a budget that holds, all."""
    holding = [budget for budget in budgets if reason in (budget.reasons or (reason,)) and _holds(budget, at)]
    return max(0, min([_most(budget, nodes) for budget in holding], default=nodes) - going)


def _most(budget: DisruptionBudget, nodes: int) -> int:
    if budget.nodes.endswith("%"):
        return -(-nodes * int(budget.nodes[:-1]) // 100)
    return int(budget.nodes)


def _holds(budget: DisruptionBudget, at: float) -> bool:
    if not budget.schedule:
        return True
    began = last_tick(Schedule(cron=budget.schedule), "", at)
    return began is not None and at < began + budget.duration_s
