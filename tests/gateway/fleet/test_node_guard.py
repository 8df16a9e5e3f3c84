"""What a gateway believes of nodes, and what becomes of the rest."""

from __future__ import annotations

from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.node_reports.node_checks import NodeFault
from pilotlight_gateway.fleet.node_guard import EARLY_AT_MOST, EARLY_OF_ONE, EARLY_S, NodeGuard
from tests.builders.calls import credit
from tests.builders.nodes import binding, container, node_report

FUNCTION = "acme:hello.greet"


def guard_of(*containers: str) -> tuple[NodeGuard, MemoryBindings]:
    bindings = MemoryBindings()
    for name in containers:
        bindings.bind(binding(name))
    return NodeGuard(bindings), bindings


def test_a_credit_of_another_nodes_container_is_dropped_and_counted() -> None:
    """Whatever it says."""
    guard, _ = guard_of("c1")

    assert guard.believes_credit("n1", credit(function=FUNCTION), 0.0)
    assert not guard.believes_credit("n2", credit(function=FUNCTION), 0.0)
    assert not guard.believes_credit("n2", credit(function=FUNCTION, node="n2", state=ContainerState.GONE), 0.0)
    assert guard.faults.counts == {NodeFault.OTHER_NODE: 1, NodeFault.BOUND_ELSEWHERE: 1}


def test_that_a_container_is_gone_is_believed_after_the_end_of_its_binding() -> None:
    """Its agent repeats it; no other credit counts then, and none of what nobody has known is told of."""
    guard, bindings = guard_of("c1")
    bindings.end("c1")

    assert guard.believes_credit("n1", credit(function=FUNCTION, state=ContainerState.GONE), 0.0)
    assert not guard.believes_credit("n1", credit(function=FUNCTION), 0.0)
    assert not guard.believes_credit("n1", credit("old", function=FUNCTION, state=ContainerState.GONE), 0.0)
    assert guard.faults.counts == {NodeFault.NOT_BOUND: 1}


def test_credits_ahead_of_their_binding_wait_for_it() -> None:
    """They come on another way. Those of its own node count, in their order."""
    guard, _ = guard_of()
    first = credit("c1", 1, function=FUNCTION, state=ContainerState.BINDING)
    second = credit("c1", 2, function=FUNCTION)
    for each in (first, second, credit("c1", 3, function=FUNCTION, slots=1_000)):
        assert not guard.believes_credit("n1", each, 0.0)
    assert not guard.believes_credit("n2", credit("c1", 9, function=FUNCTION, node="n2"), 0.0)

    assert guard.bound(binding("c1")) == [first, second]
    assert guard.bound(binding("c1")) == []


def test_credits_without_a_binding_are_given_up_and_counted() -> None:
    """After a while, or when there are too many."""
    guard, _ = guard_of()
    guard.believes_credit("n1", credit("c1", function=FUNCTION), 0.0)
    guard.expire(EARLY_S)
    guard.expire(EARLY_S)
    assert guard.faults.counts == {NodeFault.NOT_BOUND: 1}

    for number in range(3 * EARLY_AT_MOST):
        for seq in range(2 * EARLY_OF_ONE):
            guard.believes_credit("n1", credit(f"x{number}", seq, function=FUNCTION), EARLY_S)
    assert len(guard._early) == EARLY_AT_MOST
    assert max(len(early) for early, _ in guard._early.values()) == EARLY_OF_ONE


def test_a_report_speaks_of_its_own_node() -> None:
    """And of the containers that were bound there."""
    guard, _ = guard_of("c1")

    assert guard.believed_report("n2", node_report("n1"), 0.0) is None
    told = guard.believed_report("n1", node_report(containers=(container("c1"), container("forged"))), 0.0)

    assert told is not None
    assert [each.id for each in told.containers] == ["c1"]
    assert guard.faults.counts == {NodeFault.OTHER_NODE: 1}
