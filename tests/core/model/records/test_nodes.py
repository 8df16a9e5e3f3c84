"""What is on record of a node counts more than what it says of the same."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.nodes import (
    CORDONED,
    LIFE_S,
    NodeLabels,
    NodeRecord,
    NodeState,
    as_recorded,
    is_at_risk,
    with_labels,
)
from tests.builders.nodes import container, cpu_slot, gpu_device, node_report

LABELS = NodeLabels(region="eu", zone="eu-1", spot=True)
RECORD = NodeRecord(node="n1", labels=LABELS, expires_at=20.0)


def test_labels_replace_the_nodes_own_word() -> None:
    """Where it is and how it was bought decide where containers go, and what they cost."""
    report = node_report(spot=False)
    found = with_labels(report, RECORD)
    assert (found.region, found.zone, found.spot) == ("eu", "eu-1", True)
    assert with_labels(found, RECORD) is found
    assert with_labels(report, None) is report
    assert with_labels(report, NodeRecord(node="n1", state=NodeState.CORDONED)) is report
    assert [LABELS.purchase, NodeLabels(region="r", zone="z").purchase] == [Purchase.SPOT, Purchase.ON_DEMAND]


def test_a_cordoned_node_offers_what_is_in_use() -> None:
    """Its containers stay where they are; its GPUs take nothing new, for its own reason if it has one."""
    report = node_report(
        slices=(cpu_slot(0, container="c1"), cpu_slot(1), cpu_slot(2)),
        containers=(container("c1"), container("c2", slice="cpu-2")),
        devices=(gpu_device("GPU-1"), gpu_device("GPU-2", withdrawn="it is broken")),
    )
    found = as_recorded(report, NodeRecord(node="n1", state=NodeState.CORDONED))

    assert [part.id for part in found.slices] == ["cpu-0", "cpu-2"]
    assert [device.withdrawn for device in found.devices] == [CORDONED, "it is broken"]
    assert found.containers == report.containers
    assert not found.draining


def test_a_drained_node_drains() -> None:
    """And an open one is as it says."""
    report = node_report(slices=(cpu_slot(0),))
    assert as_recorded(report, NodeRecord(node="n1", state=NodeState.DRAINING)).draining
    assert as_recorded(report, NodeRecord(node="n1")) is report
    assert as_recorded(report, None) is report


@pytest.mark.parametrize(
    ("record", "at", "why"),
    [
        (RECORD, 19.9, ""), (RECORD, 20.0, "its identity has expired"),
        (NodeRecord(node="n1"), 0.0, "it has not joined"),
        (NodeRecord(node="n1", labels=LABELS, expires_at=20.0, revoked_at=1.0), 2.0, "it was revoked"),
    ],
)  # fmt: skip
def test_when_an_identity_holds(record: NodeRecord, at: float, why: str) -> None:
    """At an instant."""
    assert record.why_out(at) == why


def test_a_renewal_is_from_its_own_instant_on() -> None:
    """With the latest key first, and one before."""
    once = RECORD.renewed("k1", 10.0)
    assert (once.keys, once.expires_at) == (("k1",), 10.0 + LIFE_S)
    assert once.renewed("k2", 11.0).renewed("k3", 12.0).keys == ("k3", "k2")


def test_a_node_at_risk_is_seen_as_draining() -> None:
    """Others start elsewhere before its provider takes it away; one that is taken away says so of itself."""
    at_risk = node_report(notice=NodeNotice(kind=NoticeKind.REBALANCE))
    assert is_at_risk(at_risk)
    assert as_recorded(at_risk, None).draining
    taken = node_report(notice=NodeNotice(kind=NoticeKind.PREEMPT, deadline=1.0))
    assert not is_at_risk(taken)
    assert as_recorded(taken, None) is taken
