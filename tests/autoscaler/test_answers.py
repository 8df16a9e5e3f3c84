"""Answers to who asks why."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.answers import answer
from pilotlight_autoscaler.decide import Pass
from pilotlight_autoscaler.world import World
from pilotlight_core.model.api_placement import DecisionTold
from pilotlight_core.model.explaining import ExplainPlacement, PlacementTold
from tests.autoscaler.builders import container, demand, record, report


def world_that_placed() -> World:
    """One container was placed on n1, and another version waits."""
    world = World()
    world.on_report(report(slots=1), 1.0)
    world.on_demand(demand(queued=1), 1.0)
    decision = Pass(world, {"ver_1": record()}, {"ver_1"}, epoch=1, new_id=lambda _: "ctr_1", at=1.0).run()
    assert len(decision.commands) == 1
    return world


def ask(world: World, **asked: str) -> PlacementTold:
    return answer(world, ExplainPlacement(**asked), 1.5)


def test_a_container_and_its_function_are_explained() -> None:
    """In sentences and as data; the function by its last decisions."""
    world = world_that_placed()

    told = ask(world, container="ctr_1")

    assert told.found
    assert told.lines[0] == "ctr_1 runs on a CPU slot on n1."
    (decision,) = msgspec.json.decode(told.decisions, type=tuple[DecisionTold, ...])
    assert decision.winner is not None
    assert decision.winner.slice == "cpu-0"
    assert ask(world, function="acme:hello.greet").lines == told.lines
    assert ask(world).lines == told.lines


def test_why_not_is_answered_on_the_fleet_as_it_was() -> None:
    """Also after it has changed; without a subject by the last decision."""
    world = world_that_placed()
    world.on_report(report(container("ctr_1"), slots=1, seq=2), 1.2)

    assert ask(world, container="ctr_1", node="n1").lines == (
        "Why ctr_1 is not on n1:", "n1 was chosen: a CPU slot.",
    )  # fmt: skip
    told = ask(world, node="n7")
    assert told.lines[0] == "Why ctr_1 is not on n7:"
    assert told.lines[1].startswith("There was no node n7 at revision")


def test_a_refusal_is_explained_and_repeated_ones_count_once() -> None:
    """The placement before it is remembered still."""
    world = world_that_placed()
    world.on_report(report(container("ctr_1", running=1), slots=1, seq=2), 1.2)
    for _ in range(5):
        world.on_demand(demand(queued=9), 1.3)
        Pass(world, {"ver_1": record()}, {"ver_1"}, epoch=1, new_id=lambda _: "no", at=1.3).run()

    lines = ask(world, function="acme:hello.greet").lines

    assert lines[0] == "ctr_1 runs on a CPU slot on n1."
    assert sum("has no place" in line for line in lines) == 1


def test_what_is_not_remembered_is_said_to_be_so() -> None:
    """A new leader has not decided what runs."""
    world = World()
    assert not ask(world).found
    world.on_report(report(container("ctr_9")), 1.0)

    assert "another controller decided it" in ask(world, container="ctr_9").lines[0]
    assert "Nothing is remembered of a container ctr_0" in ask(world, container="ctr_0").lines[0]
    assert "Nothing is remembered of acme:x.y" in ask(world, function="acme:x.y").lines[0]
