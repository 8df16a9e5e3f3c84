"""Nodes: those first that are not as they should be."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.blocks import PageForm
from pilotlight_gateway.dashboard.pages.nodes_page import NODE_ACTIONS, node_blocks, nodes_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, container, node, table_of


def test_who_is_silent_or_leaves_stands_first() -> None:
    """With what its provider has said of its end."""
    listed = [
        node("a"), node("b", status="silent"), node("c", state="draining", clock_s=-0.5),
        node("d", notice={"kind": "preempt", "deadline": 1_090.0}),
        node("e", notice={"kind": "rebalance", "deadline": 0.0}), node("f", status="expired", expires_at=60.0),
    ]  # fmt: skip
    blocks = nodes_blocks({"nodes": listed}, 1_000.0)
    assert answer_of(blocks) == ("6 nodes: 1 silent, 1 on the way out.", "bad")
    rows = table_of(blocks, "nodes")
    assert [row[0] for row in rows] == ["b", "c", "f", "a", "d", "e"]
    assert rows[1][8] == "-0.50 s"
    assert rows[2][1] == "expired, until 1970-01-01 00:01:00"
    assert [row[7] for row in rows[3:]] == ["", "preempt in 1 min 30 s", "rebalance"]


def test_a_node_has_what_may_be_done_with_it() -> None:
    """Each a form of an action that there is."""
    blocks = node_blocks(node(), {"containers": [container(), container(id="ctr_2", node="n2")]})
    forms = [block for block in blocks if isinstance(block, PageForm)]
    assert {form.action for form in forms} == {action.path.format(node="n1") for action in NODE_ACTIONS}
    assert all(form.method == "post" for form in forms)
    assert [row[0] for row in table_of(blocks, "containers")] == ["ctr_1"]
