"""How fast containers are by the curves of their slices."""

from __future__ import annotations

from itertools import count

import msgspec

from pilotlight_autoscaler.explain_answers import answer
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.version_speed import speed_of
from pilotlight_core.model.messages.controller_questions import ExplainPlacement
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import SLO
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import container


def test_a_service_level_gets_containers_by_the_curve_of_their_slices() -> None:
    """71 calls a second at 40 a second and container are three; of the batch sizes those within the level count."""
    world = World()
    world.on_report(report(container("c1", running=1), slots=4), 1.0)
    for tick in range(1, 40):
        world.on_demand(msgspec.structs.replace(demand(running=1), arrivals=18), 1.0 + tick * 0.25)
    at = 1.0 + 39 * 0.25
    world.on_report(report(container("c1", running=1), slots=4, seq=2), at)
    points = (
        ThroughputPoint(batch=1, throughput=40.0, p95_ms=25.0),
        ThroughputPoint(batch=8, throughput=200.0, p95_ms=90.0),
    )
    known = {"ver_1": record(slo=SLO(p95_ms=50.0))}
    curves = {"ver_1": Curves({("CPU", "slot"): points})}
    ids = count(1)

    decision = Pass(
        world,
        PassInput(versions=known, deployed=known, epoch=7, new_id=lambda _: f"new{next(ids)}", at=at, curves=curves),
    ).run()

    assert [type(sent.command) for sent in decision.commands] == [Bind, Bind]
    told = "hello.greet@v1: 3 containers carry 71.4 calls per second within 50 ms, used to 80%"
    assert decision.notes[0].startswith(told)
    explained = answer(world, ExplainPlacement(function="acme:hello.greet"), at, at)
    assert explained.lines[:2] == ("Now:", f"  {told}; those that are there do 40 per second.")


def test_without_a_level_a_curve_or_a_place_no_speed_is_known() -> None:
    """A container that reports know and the fleet does not yet has no slice to look up."""
    curves = Curves({("CPU", "slot"): (ThroughputPoint(batch=1, throughput=40.0, p95_ms=25.0),)})
    world = World()
    world.on_report(report(container("c1")), 1.0)
    fleet = world.fleet(1.0)
    there = [container("c1")]
    wanted = record(slo=SLO(p95_ms=50.0))

    known = speed_of(wanted, curves, there, fleet)

    assert known is not None
    assert (known.there, known.next) == ((40.0,), 40.0)
    assert speed_of(record(), curves, there, fleet) is None
    assert speed_of(wanted, None, there, fleet) is None
    assert speed_of(record(slo=SLO(p95_ms=5.0)), curves, there, fleet) is None
    assert speed_of(wanted, curves, [*there, container("c2", slice="cpu-1")], fleet) is None
