"""Zones that have just preempted."""

from __future__ import annotations

from pilotlight_autoscaler.policy.spot.avoided_zones import FORGOTTEN_AFTER_S, AvoidedZones

ZONES = ("a", "b", "c", "d")


def test_a_zone_is_avoided_until_a_later_machine_is_ready() -> None:
    """One that was launched before its preemption proves nothing."""
    zones = AvoidedZones()
    zones.zone_preempted("a", 100.0)
    zones.zone_served("a", 99.0)
    assert zones.avoided(ZONES, 101.0) == {"a"}
    zones.zone_served("a", 100.0)
    assert zones.avoided(ZONES, 102.0) == set()


def test_the_list_is_cleared_where_fewer_than_two_zones_are_left() -> None:
    """But for the last one: to go back there at once cannot be right."""
    zones = AvoidedZones()
    zones.zone_preempted("a", 1.0)
    zones.zone_preempted("b", 2.0)
    assert zones.avoided(ZONES, 3.0) == {"a", "b"}
    zones.zone_preempted("c", 3.0)
    assert zones.avoided(ZONES, 3.0) == {"c"}


def test_a_pool_of_few_zones_has_somewhere_to_go() -> None:
    """Of one zone there is nothing to avoid; of two, the other one remains."""
    zones = AvoidedZones()
    zones.zone_preempted("a", 1.0)
    assert zones.avoided(("a",), 1.0) == set()
    zones.zone_preempted("a", 1.0)
    assert zones.avoided(("a", "b"), 1.0) == {"a"}


def test_a_zone_is_forgotten_some_time() -> None:
    """Who launches nothing there never learns that it has machines again. Those of other pools do not count."""
    zones = AvoidedZones()
    zones.zone_preempted("a", 0.0)
    zones.zone_preempted("elsewhere", FORGOTTEN_AFTER_S)
    assert zones.avoided(ZONES, FORGOTTEN_AFTER_S) == {"a"}
    assert zones.avoided(ZONES, FORGOTTEN_AFTER_S + 1.0) == set()
    assert zones.avoided(("elsewhere", "a", "b"), FORGOTTEN_AFTER_S + 1.0) == {"elsewhere"}
