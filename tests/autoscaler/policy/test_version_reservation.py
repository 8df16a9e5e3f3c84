"""The choice of the version that devices are reserved for."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.policy.version_reservation import (
    AFTER_S,
    FOR_S,
    VersionReservation,
    WaitingVersion,
    next_reservation,
)
from pilotlight_core.model.devices import MigMode
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB
from pilotlight_placement.explain.explanation import why_not
from pilotlight_placement.fleet.fleet import Fleet
from tests.autoscaler.fleet import FakeFleet, FakeGpu, FakeNode, version
from tests.placement.makers import ask, gpu, node

PAIR, SINGLE = ask("H100:2", function="acme:app.pair"), ask("H100", function="acme:app.one")


def waits(version: str, seconds: float) -> WaitingVersion:
    return WaitingVersion(version=version, ask=PAIR if version == "pair" else SINGLE, waited_s=seconds)


def fleet() -> Fleet:
    return Fleet([node("a", gpu("a1"), gpu("a2")), node("b", gpu("b1"))])


def kept_for(now: VersionReservation | None) -> str:
    return now.version if now is not None else ""


def test_the_one_that_waits_longest_has_devices_kept_as_long_as_it_waits() -> None:
    """After a while; a version that waits longer meanwhile does not replace it."""
    there = fleet()
    assert next_reservation(None, [waits("pair", AFTER_S - 1)], there, 0.0) is None
    assert next_reservation(None, [waits("one", AFTER_S), waits("pair", AFTER_S + 1)], there, 0.0) is not None
    now = next_reservation(None, [waits("one", AFTER_S), waits("pair", AFTER_S + 1)], there, 0.0)
    assert kept_for(now) == "pair"

    again = next_reservation(now, [waits("one", 99.0), waits("pair", 20.0)], there, 5.0)

    assert kept_for(again) == "pair"
    assert again is not None
    assert again.since == 0.0
    assert kept_for(next_reservation(again, [waits("one", 99.0)], there, 6.0)) == "one"
    assert next_reservation(again, [], there, 6.0) is None


def test_after_its_time_others_have_their_turn_and_elsewhere() -> None:
    """Then it may have it again."""
    there = fleet()
    now = next_reservation(None, [waits("pair", 60.0), waits("one", 50.0)], there, 0.0)

    after = next_reservation(now, [waits("pair", 400.0), waits("one", 350.0)], there, FOR_S)
    assert after is not None
    assert (after.version, set(after.kept.devices)) == ("one", {("b", "b1")})
    assert kept_for(next_reservation(now, [waits("pair", 400.0)], there, FOR_S)) == "pair"


def test_devices_that_are_out_of_service_are_not_kept() -> None:
    """Others are, if there are others."""
    there = fleet()
    now = next_reservation(None, [waits("one", 60.0)], there, 0.0)
    assert now is not None
    there.put(node("b", gpu("b1", withdrawn="Xid 79")))
    there.put(node("a", gpu("a1"), gpu("a2")))

    moved = next_reservation(now, [waits("one", 70.0)], there, 1.0)

    assert moved is not None
    assert all(name == "a" for name, _ in moved.kept.devices)


def two_gpus(*, mig: bool = False) -> FakeNode:
    mode = MigMode.ON if mig else MigMode.OFF
    return FakeNode(name="n1", gpus=[FakeGpu(id=f"GPU-{n}", kind="H100-80GB", mig=mode) for n in (1, 2)])


def serve(fleet: FakeFleet, steps: int) -> set[str]:
    """Every container ends by itself some steps after it has started, and every version is waited for until it runs.

    Returns which of them ever ran.
    """
    ran: set[str] = set()
    for _ in range(steps):
        for there in fleet.nodes:
            for each in there.containers.values():
                each.leaving = each.leaving or fleet.at - each.ready_at >= 5
        fleet.step({version: 1 for version in fleet.versions if not fleet.running(version)})
        ran |= {version for version in fleet.versions if fleet.running(version)}
    return ran


@pytest.mark.parametrize("mig", [False, True])
def test_whoever_needs_much_is_served_among_many_who_need_little(mig: bool) -> None:
    """Each free part would go to a version that needs no more: some are reserved together instead."""
    need = {"vram": 30 * GIB, "isolation": Isolation.MIG} if mig else {}
    little = [
        version(f"s{n}", tenant=f"t{n}", gpu=(GpuAsk("H100"),), max_containers=1, **need)
        for n in range(6 if mig else 4)
    ]
    much = version("much", tenant="zoo", gpu=(GpuAsk("H100", 1 if mig else 2),), vram=75 * GIB, max_containers=1)
    fleet = FakeFleet(nodes=[two_gpus(mig=mig)], versions={made.id: made for made in little})
    for n in range(3):
        fleet.step({f"ver_s{n}": 1})
    fleet.versions[much.id] = much

    assert serve(fleet, 150) == set(fleet.versions)


def test_what_is_kept_too_long_is_given_up() -> None:
    """Somebody stays on one of two GPUs for ever: others get the other one again."""
    stays, waits, pair = (
        version(name, tenant=name, gpu=(GpuAsk("H100", count),), max_containers=1)
        for name, count in (("stays", 1), ("waits", 1), ("pair", 2))
    )
    fleet = FakeFleet(nodes=[two_gpus()], versions={stays.id: stays, pair.id: pair})
    for _ in range(3):
        fleet.step({"ver_stays": 1})
    for _ in range(20):
        fleet.step({"ver_pair": 1})
    fleet.versions[waits.id] = waits

    fleet.step({"ver_pair": 1, "ver_waits": 1})
    assert fleet.short["ver_waits"].startswith("all 2 devices and slots that could hold H100")
    decided = fleet.world.decisions.of_function("waits:hello.waits")[-1]
    (told,) = why_not(fleet.world.fleet(fleet.at), decided.outcome, "n1")
    assert "it is kept for pair:hello.pair, which has waited longest" in told
    for _ in range(320):
        fleet.step({"ver_pair": 1, "ver_waits": 1})
    assert fleet.running("ver_waits")
