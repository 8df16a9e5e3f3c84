"""Nodes as operators see them: by their records and their reports."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord, NodeState
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.nodes.node_list import node_infos
from tests.builders.nodes import node_report

LABELS = NodeLabels(region="r", zone="z1", pool="p", spot=True)


def reports(*nodes: str, **more: Any) -> list[dict[str, Any]]:
    view = FleetView()
    for node in nodes:
        view.on_report(node_report(node, **more), 0.0)
    return view.nodes(0.0)


def test_each_node_is_there_once() -> None:
    """Whether it reports, is on record, or both."""
    records = [
        NodeRecord(node="a", labels=LABELS, expires_at=20.0), NodeRecord(node="b", state=NodeState.CORDONED),
        NodeRecord(node="c", labels=LABELS, expires_at=20.0, revoked_at=5.0),
        NodeRecord(node="d", labels=LABELS, expires_at=9.0),
    ]  # fmt: skip
    found = node_infos(reports("a", "b", "e"), records, 10.0)

    assert [(node.node, node.status, node.state) for node in found] == [
        ("a", "up", "open"), ("b", "up", "cordoned"), ("c", "revoked", "open"), ("d", "expired", "open"),
        ("e", "up", "open"),
    ]  # fmt: skip
    assert [node.joined for node in found] == [True, False, True, True, False]
    assert [node.expires_at for node in found] == [20.0, None, None, 9.0, None]


def test_labels_are_those_on_record() -> None:
    """Else the node's own; what only it knows is its own in any case."""
    (joined,) = node_infos(reports("a"), [NodeRecord(node="a", labels=LABELS, expires_at=20.0)], 10.0)
    assert (joined.region, joined.zone, joined.pool, joined.purchase) == ("r", "z1", "p", "spot")
    assert joined.guarantees["sandbox"] == "bubblewrap"
    (own,) = node_infos(reports("a"), [], 10.0)
    assert (own.region, own.zone, own.pool, own.purchase) == ("local", "z", "", "on-demand")


def test_an_agent_that_ends_drains() -> None:
    """By its own word."""
    (found,) = node_infos(reports("a", draining=True), [], 10.0)
    assert (found.state, found.draining) == ("draining", True)
    told = NodeNotice(kind=NoticeKind.PREEMPT, deadline=99.0, reason="a drill")
    (taken,) = node_infos(reports("a", notice=told), [], 10.0)
    assert (found.notice, taken.notice) == (None, {"kind": "preempt", "deadline": 99.0, "reason": "a drill"})
    (silent,) = node_infos([], [NodeRecord(node="a", labels=LABELS, expires_at=20.0)], 10.0)
    assert (silent.status, silent.zone) == ("silent", "z1")
