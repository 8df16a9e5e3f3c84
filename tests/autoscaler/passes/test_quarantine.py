"""Versions that are set aside."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.quarantine import FOR_S, MOST, TRIED_AT_ONCE, Quarantine, VersionFacts
from pilotlight_autoscaler.policy.prediction.function_memory import FunctionMemory
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds
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


def bounds_of(version: VersionRecord) -> Mapping[str, ScaleBounds]:
    """Those of one version cannot be worked out."""
    if version.id == "ver_unbound":
        raise OverflowError("a window that never opens")
    return {}


def faults_of(
    quarantine: Quarantine, world: World, versions: Mapping[str, VersionRecord], at: float = 1.0
) -> dict[str, Exception]:
    known = VersionFacts(deployed=versions, curves_of=curves_of, bounds_of=bounds_of)
    return quarantine.find_faults(world, versions, known, at=at, wall=at)


def test_only_what_is_at_fault_is_set_aside_and_for_a_while() -> None:
    """Whatever it raises; then it is tried again."""
    world, quarantine = World(), Quarantine()
    world.on_report(report(), 1.0)
    versions = {name: record(name) for name in ("ver_good", "ver_slow", "ver_unread", "ver_unbound")}

    faults = faults_of(quarantine, world, versions)

    assert {name: type(fault) for name, fault in faults.items()} == {
        "ver_slow": OverflowError,
        "ver_unread": ValueError,
        "ver_unbound": OverflowError,
    }
    assert list(quarantine.without(versions, 2.0)) == ["ver_good"]
    assert quarantine.without(versions, 1.0 + FOR_S) == versions
    check_integrity(world.fleet(1.0))


class SpoiltMemory(FunctionMemory):
    """What is remembered of a function makes its wish fail."""

    def ahead(self) -> int:
        raise ZeroDivisionError


def test_a_version_is_tried_with_what_is_remembered_of_its_function() -> None:
    """A pass fails on that as on anything else."""
    world, quarantine, version = World(), Quarantine(), record()
    world.scaling.restore({"acme:hello.greet": SpoiltMemory(0.0, 0.0)})

    assert list(faults_of(quarantine, world, {version.id: version})) == [version.id]


def test_of_many_versions_some_are_tried_after_each_failure() -> None:
    """The process must not stand still for seconds; and it is known when none of them is at fault."""
    world, quarantine = World(), Quarantine()
    names = [f"ver_{n}" for n in range(2 * TRIED_AT_ONCE)]
    versions = {name: record(name) for name in (*names, "ver_unread")}

    assert faults_of(quarantine, world, versions) == faults_of(quarantine, world, versions) == {}
    assert not quarantine.is_in_vain
    assert list(faults_of(quarantine, world, versions)) == ["ver_unread"]

    del versions["ver_unread"]
    assert faults_of(quarantine, world, versions) == faults_of(quarantine, world, versions) == {}
    assert quarantine.is_in_vain


def test_there_is_an_end_to_what_is_set_aside() -> None:
    """The ones whose time is over first are tried again."""
    world, quarantine = World(), Quarantine()
    for first in range(0, MOST + 10, 10):
        versions = {f"ver_{n}": record(f"ver_{n}") for n in range(first, first + 10)}
        unread = {name: msgspec.structs.replace(one, id="ver_unread") for name, one in versions.items()}
        faults_of(quarantine, world, unread, 1.0 + first / 1_000.0)

    last = MOST + 9
    assert quarantine.without({name: record(name) for name in ("ver_0", f"ver_{last}")}, 2.0).keys() == {"ver_0"}
