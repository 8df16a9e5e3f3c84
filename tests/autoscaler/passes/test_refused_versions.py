"""What is remembered of versions without a place, beyond those that a pass has decided on."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.policy.reclaim import SIBLING_WAITED_S
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.units import GpuAsk
from tests.autoscaler.builders import demand, record, report

GIB = 2**30


def blocked(count: int) -> dict[str, VersionRecord]:
    """Versions that want a GPU where there is none, each with some more of the host's memory than the one before."""
    found = (record(f"ver_{n}", gpu=(GpuAsk("H100"),), vram=GIB, memory=(n + 1) * GIB) for n in range(count))
    return {version.id: version for version in found}


def decide(world: World, versions: dict[str, VersionRecord], decided: set[str], at: float, **told: Any) -> None:
    """A pass in which calls of all versions wait, and some are decided on."""
    world.on_report(report(seq=int(at * 10) + 1), at)
    for version in versions:
        world.on_demand(demand(version, queued=1, function=f"acme:hello.{version}", **told), at)
    given = PassInput(
        versions=versions, deployed=versions, epoch=1, new_id=lambda _: "new", at=at, wall=at, decided=decided
    )
    Pass(world, given).run()


def due(world: World, at: float) -> list[str]:
    return world.refusals.due(at, room=False)


def test_who_may_have_most_speaks_for_all_that_need_as_much() -> None:
    """None of the others is looked at before some seconds have passed."""
    world, versions = World(), blocked(4)
    decide(world, versions, set(versions), 0.0, oldest_ms=SIBLING_WAITED_S * 1e3)
    assert due(world, 5.0) == ["ver_0"]

    decide(world, versions, {"ver_0"}, 5.0, oldest_ms=SIBLING_WAITED_S * 1e3)

    assert due(world, 9.0) == []


def test_who_waits_for_less_long_speaks_for_itself_alone() -> None:
    """Others may take what it may not."""
    world, versions = World(), blocked(4)
    decide(world, versions, set(versions), 0.0, oldest_ms=10.0)

    decide(world, versions, {"ver_0"}, 5.0, oldest_ms=10.0)

    assert due(world, 9.0) == ["ver_1"]
