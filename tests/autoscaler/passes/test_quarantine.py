"""Versions that are set aside."""

from __future__ import annotations

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.quarantine import FOR_S, Quarantine
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.fleet.audit import check_integrity
from tests.autoscaler.builders import record, report


def curves_of(version: VersionRecord) -> Curves | None:
    """One version's make its cost infinite, those of another cannot be read."""
    if version.id == "ver_unread":
        raise ValueError("a point of a curve is positive")
    if version.id == "ver_slow":
        return Curves({("CPU", "slot"): (ThroughputPoint(batch=1, throughput=1e-320, p95_ms=1.0),)})
    return None


def test_only_what_is_at_fault_is_set_aside_and_for_a_while() -> None:
    """Whatever it raises; then it is tried again."""
    world, quarantine = World(), Quarantine()
    world.on_report(report(), 1.0)
    versions = {name: record(name) for name in ("ver_good", "ver_slow", "ver_unread")}

    faults = quarantine.find_faults(world, versions.values(), curves_of, 1.0)

    assert {name: type(fault) for name, fault in faults.items()} == {
        "ver_slow": OverflowError,
        "ver_unread": ValueError,
    }
    assert list(quarantine.without(versions, 2.0)) == ["ver_good"]
    assert quarantine.without(versions, 1.0 + FOR_S) == versions
    check_integrity(world.fleet(1.0))
