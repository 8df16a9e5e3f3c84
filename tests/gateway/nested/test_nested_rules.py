"""Who may ask for nested calls, and which are refused."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_questions import (
    MOST_AT_ONCE,
    MOST_DEPTH,
    MOST_IN_ALL,
    MOST_OF_TREE,
    MOST_REQUEST,
)
from pilotlight_gateway.nested.nested_rules import (
    Lineage,
    TreeCount,
    bound_fault,
    circle_fault,
    claim_fault,
    is_running,
)
from tests.gateway.nested.nested_world import asked, live_call


def test_a_node_speaks_for_what_this_gateway_sent_there() -> None:
    """For no call of another node, container or grant, none that waits or is unknown, and for no container at all."""
    live = live_call()

    assert claim_fault(live, "n1", asked()) is None
    for node, ask in (
        ("n2", asked()), ("n1", asked(container="c2")), ("n1", asked(grant_number=2)), ("n1", asked(container="")),
    ):  # fmt: skip
        fault = claim_fault(live, node, ask)
        assert fault is not None
        assert fault.wire_code == "unknown_call"
    assert claim_fault(None, "n1", asked()) is not None
    assert claim_fault(live_call(granted=False), "n1", asked()) is not None
    assert is_running(live, "n1", 1)
    assert not is_running(live, "n1", 2)


def fault(depth: int = 1, at_once: int = 0, tree: TreeCount | None = None, size: int = 1) -> PilotlightError | None:
    """What one more nested call breaks."""
    lineage = Lineage("root", tuple(f"acme:shop.f{number}" for number in range(depth)))
    return bound_fault(lineage, at_once, tree or TreeCount(), asked(request=b"x", request_size=size))


def test_the_bounds_are_those_that_are_stated() -> None:
    """The last one within is let in, and the next one names its bound."""
    assert fault(depth=MOST_DEPTH - 1) is None
    deepest = fault(depth=MOST_DEPTH)
    assert deepest is not None
    assert deepest.detail.startswith(f"depth: calls may be nested {MOST_DEPTH} deep")
    assert fault(at_once=MOST_AT_ONCE - 1) is None
    wide = fault(at_once=MOST_AT_ONCE)
    assert wide is not None
    assert wide.detail.startswith(f"fan-out: a call may wait for {MOST_AT_ONCE} others")


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (TreeCount(open=MOST_OF_TREE, total=MOST_OF_TREE), f"below one call from outside {MOST_OF_TREE} calls"),
        (TreeCount(open=0, total=MOST_IN_ALL), f"one call from outside may lead to {MOST_IN_ALL} others"),
    ],
)
def test_a_tree_is_bounded_as_a_whole(tree: TreeCount, said: str) -> None:
    """What is open below one call from outside, and all that ever was."""
    found = fault(tree=tree)

    assert found is not None
    assert said in found.detail
    assert found.wire_code == "nested_refused"


def test_a_request_is_as_large_as_from_outside() -> None:
    """By what is announced of it, too."""
    large = fault(size=MOST_REQUEST + 1)

    assert fault(size=MOST_REQUEST) is None
    assert large is not None
    assert large.wire_code == "too_large"


def test_no_function_is_called_below_itself() -> None:
    """Directly or over others; a function beside it may be."""
    lineage = Lineage("root").below("acme:shop.a").below("acme:shop.b")

    assert circle_fault(lineage, "acme:shop.c") is None
    circle = circle_fault(lineage, "acme:shop.a")
    assert circle is not None
    assert circle.detail.startswith("circle: acme:shop.a > acme:shop.b > acme:shop.a.")


def test_a_path_names_no_function_of_another_tenant_than_its_readers() -> None:
    """Who shares a function does not learn what its callers' functions are called."""
    above = ("guest:merger.price", "acme:shop.outer", "guest:merger.other", "acme:shop.inner")
    circle = circle_fault(Lineage("root", above), "acme:shop.outer")
    deep = bound_fault(Lineage("root", above), 0, TreeCount(), asked())

    for refusal in (circle, deep):
        assert refusal is not None
        assert "merger" not in refusal.detail
        assert "a caller's function > acme:shop.outer > a caller's function > acme:shop.inner" in refusal.detail
