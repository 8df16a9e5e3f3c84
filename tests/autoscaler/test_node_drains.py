"""Which containers end, and when, while operators drain their nodes."""

from __future__ import annotations

from pilotlight_autoscaler.node_drains import AGAIN_S, AT_ONCE, REPLACED_WITHIN_S, NodeDrains
from pilotlight_core.model.messages.node_messages import (
    ContainerReport,
    ContainerState,
    NodeNotice,
    NodeReport,
    NoticeKind,
)
from pilotlight_core.model.records.nodes import NodeRecord, NodeState
from tests.builders.nodes import container, node_report

DRAINING = NodeRecord(node="n1", state=NodeState.DRAINING)


def nodes(*here: ContainerReport, elsewhere: tuple[ContainerReport, ...] = (), **other: bool) -> dict[str, NodeReport]:
    return {
        "n1": node_report("n1", containers=here, draining=True), "n2": node_report("n2", containers=elsewhere, **other),
    }  # fmt: skip


def named(drains: NodeDrains, reports: dict[str, NodeReport], at: float) -> list[str]:
    return [command.container for _, command in drains.due(reports, 7, at)]


def test_only_drained_nodes_are_emptied() -> None:
    """Each container is told so with the platform's grace, and again if that may have been lost."""
    drains, reports = (
        NodeDrains([DRAINING], grace_s=30.0),
        nodes(container("c1", idle_s=9.0), elsewhere=(container("c2"),)),
    )
    ((node, drain),) = drains.due(reports, 7, 0.0)
    assert (node, drain.container, drain.epoch, drain.within_ms) == ("n1", "c1", 7, 30_000.0)
    assert named(drains, reports, AGAIN_S - 0.1) == []
    assert named(drains, reports, AGAIN_S) == ["c1"]
    assert named(NodeDrains(), reports, 0.0) == []


def test_what_has_work_waits_for_another() -> None:
    """That is ready on a node which stays; but not for ever."""
    busy, ready = container("c1", running=1, idle_s=0.0), container("c2")
    for reports in (nodes(busy), nodes(busy, elsewhere=(container("c2", state=ContainerState.LOADING),)),
                    nodes(busy, elsewhere=(ready,), draining=True)):  # fmt: skip
        drains = NodeDrains([DRAINING])
        assert named(drains, reports, 100.0) == []
        assert named(drains, reports, 100.0 + REPLACED_WITHIN_S) == ["c1"]
    assert named(NodeDrains([DRAINING]), nodes(busy, elsewhere=(ready,)), 100.0) == ["c1"]


def test_what_ends_anyway_is_left_alone() -> None:
    """And no more are told at a time than there may be."""
    ending = [container(f"c{n}", state=state) for n, state in enumerate((ContainerState.DRAINING, ContainerState.GONE))]
    assert named(NodeDrains([DRAINING]), nodes(*ending), 1_000.0) == []
    many, drains = nodes(*(container(f"c{n:02}", idle_s=9.0) for n in range(AT_ONCE + 3))), NodeDrains([DRAINING])
    assert len(named(drains, many, 0.0)) == AT_ONCE
    assert len(named(drains, many, 1.0)) == 3


def test_a_word_taken_back_counts_at_once() -> None:
    """As does a new one; keys of other records do not."""
    drains, reports = NodeDrains(), nodes(container("c1", idle_s=9.0))
    drains.on_record("node.n1", DRAINING)
    drains.on_record("key.n1", None)
    assert named(drains, reports, 0.0) == ["c1"]
    drains.on_record("node.n1", NodeRecord(node="n1", state=NodeState.CORDONED))
    assert named(drains, reports, 100.0) == []
    drains.on_record("node.n1", DRAINING)
    drains.on_record("node.n1", None)
    assert named(drains, reports, 200.0) == []


def test_a_node_at_risk_is_emptied_without_haste() -> None:
    """Only what is ready elsewhere ends, or what nobody has needed for long; once it is at risk no more, nothing."""
    notice = NodeNotice(kind=NoticeKind.REBALANCE)
    busy, idle, unused = container("c1"), container("c2", "ver_2", idle_s=60.0), container("c3", "ver_3", idle_s=9e3)

    def reports(*elsewhere: ContainerReport, notice: NodeNotice | None = notice) -> dict[str, NodeReport]:
        here = node_report("n1", containers=(busy, idle, unused), draining=True, notice=notice)
        return {"n1": here, "n2": node_report("n2", containers=elsewhere)}

    assert named(NodeDrains(), reports(), 0.0) == ["c3"]
    assert named(NodeDrains(), reports(container("c4")), 0.0) == ["c1", "c3"]
    assert named(NodeDrains(), reports(container("c4"), notice=None), 0.0) == []
    preempted = NodeNotice(kind=NoticeKind.PREEMPT, deadline=120.0)
    assert named(NodeDrains(), reports(container("c4"), notice=preempted), 0.0) == []  # its agent does it
