"""Zones in which spot nodes were taken away, by what nodes report."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.observations.spot_zones import SpotZones
from pilotlight_core.model.messages.node_messages import NodeNotice, NodeReport, NoticeKind
from tests.builders.nodes import node_report

TAKEN = NodeNotice(kind=NoticeKind.PREEMPT, deadline=220.0)


def spot(node: str, zone: str, **more: Any) -> NodeReport:
    return node_report(node, zone=zone, spot=True, **more)


def seen(*reports: NodeReport) -> SpotZones:
    zones = SpotZones()
    for report in reports:
        zones.on_report(report, 0.0)
    return zones


NODES = (spot("n1", "a"), spot("n2", "b"), spot("n3", "c"), node_report("n4", zone="d"))
ZONES = ("a", "b", "c", "d")
NAMES = {"n1", "n2", "n3", "n4"}


def test_a_notice_is_noted_once() -> None:
    """As soon as the node says it; that it goes then is nothing new. Nodes on demand do not count."""
    zones = seen(*NODES)
    assert zones.avoided(ZONES, 0.0) == set()
    zones.on_report(spot("n1", "a", notice=TAKEN), 100.0)
    zones.on_report(spot("n1", "a", notice=TAKEN), 101.0)
    zones.on_report(spot("n1", "a", stopped=True), 150.0)
    zones.refresh(NAMES - {"n1", "n4"}, 150.0)
    assert zones.avoided(ZONES, 150.0) == {"a"}


def test_a_spot_node_that_is_silent_was_taken_away() -> None:
    """One that has stopped in order was not."""
    zones = seen(*NODES)
    zones.on_report(spot("n2", "b", stopped=True), 10.0)
    zones.refresh(NAMES - {"n1", "n2"}, 10.0)
    assert zones.avoided(ZONES, 10.0) == {"a"}


def test_a_zone_counts_again_with_a_node_that_came_later() -> None:
    """One that was there before says nothing of what there is now."""
    zones = seen(*NODES, spot("n5", "a"))
    zones.on_report(spot("n1", "a", notice=TAKEN), 100.0)
    zones.on_report(spot("n5", "a"), 101.0)
    assert zones.avoided(ZONES, 101.0) == {"a"}
    zones.on_report(spot("n6", "a"), 500.0)
    assert zones.avoided(ZONES, 500.0) == set()


def test_others_may_say_it_too() -> None:
    """A pool that found no machine there."""
    zones = seen(*NODES)
    zones.on_preempted("c", 5.0)
    assert zones.avoided(ZONES, 5.0) == {"c"}
