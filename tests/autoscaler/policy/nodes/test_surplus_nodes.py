"""Which nodes go."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_autoscaler.policy.nodes.surplus_nodes import DRAINED, PoolNode, surplus_nodes
from pilotlight_core.model.api.pools.pool_terms import DisruptionBudget, DisruptionReason
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolState
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import Ask
from tests.builders.pools import launch, pool

NOW = 10_000.0
AFTER_S = 300.0


def going(nodes: list[PoolNode], *waiting: Ask, **terms: Any) -> list[str]:
    """The names of the nodes that go."""
    state = terms.pop("state", PoolState.OPEN)
    record = pool(state=state, consolidate_after_s=AFTER_S, **terms)
    view = PoolView(record=record, launches=tuple(each.launch for each in nodes), digest=record.terms.digest)
    return [found.node for found, _ in surplus_nodes(view, nodes, waiting, NOW)]


def empty(number: int, for_s: float = AFTER_S, **more: Any) -> PoolNode:
    return PoolNode(launch=launch(number, **more), empty_since=NOW - for_s)


def busy(number: int, **more: Any) -> PoolNode:
    return PoolNode(launch=launch(number, **more))


def test_empty_nodes_go_after_a_while_the_dearest_first() -> None:
    """Those with containers stay, and those that have just become empty."""
    nodes = [empty(1, usd_per_hour=1.0), busy(2), empty(3, AFTER_S - 1.0), empty(4, usd_per_hour=2.0)]
    assert going(nodes) == ["l4-n4", "l4-n1"]


def test_no_node_goes_below_the_least() -> None:
    """Of those that stay."""
    assert going([empty(1), empty(2), empty(3)], least_nodes=2) == ["l4-n1"]
    assert going([empty(1), launch_going(2)], least_nodes=1) == []
    coming = PoolNode(launch=launch(2, state=LaunchState.LAUNCHING))
    assert going([empty(1), coming], least_nodes=1) == []


def launch_going(number: int) -> PoolNode:
    return PoolNode(launch=launch(number, state=LaunchState.ENDING))


def test_a_node_that_would_take_what_waits_stays() -> None:
    """Such as a floor that has no place at the moment."""
    assert going([empty(1)], Ask(gpu=(GpuAsk("L4"),))) == []
    assert going([empty(1)], Ask(gpu=(GpuAsk("H100"),))) == ["l4-n1"]


def test_budgets_bound_how_many_go() -> None:
    """By reason."""
    budgets = (DisruptionBudget(nodes="1", reasons=(DisruptionReason.EMPTY,)),)
    assert len(going([empty(1), empty(2), empty(3)], budgets=budgets)) == 1
    assert going([empty(1), empty(2), launch_going(3)], budgets=budgets) == []


def test_nodes_of_a_changed_pool_go_busy_or_not() -> None:
    """Within the budget; what runs on them starts elsewhere first."""
    nodes = [busy(1, digest="before"), busy(2), empty(3, digest="before")]
    assert going(nodes) == ["l4-n1", "l4-n3"]
    assert going(nodes, budgets=(DisruptionBudget(nodes="1"),)) == ["l4-n1"]


def test_all_nodes_of_a_drained_pool_go() -> None:
    """Whatever the budget; those that go already are not told again."""
    nodes = [busy(1), empty(2, 0.0), launch_going(3)]
    record = pool(state=PoolState.DRAINING, budgets=(DisruptionBudget(nodes="0"),))
    view = PoolView(record=record, launches=tuple(each.launch for each in nodes))
    found: list[tuple[LaunchRecord, str]] = surplus_nodes(view, nodes, (), NOW)
    assert [(one.node, why) for one, why in found] == [("l4-n1", DRAINED), ("l4-n2", DRAINED)]
