"""Scaling in sentences: what was decided, what is foretold, what one more would take."""

from __future__ import annotations

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.scaling_answers import MOST_TOLD, explain_scaling
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import container

FUNCTION = "acme:hello.greet"
NOW = 1_000_000.0


def asked(world: World, at: float = 0.0, now: float = NOW) -> list[str]:
    return list(explain_scaling(world, FUNCTION, at, now).lines)


def test_it_says_what_is_wanted_and_by_which_rule() -> None:
    """With what is there, and what one more takes."""
    world = World()
    world.on_report(report(), 1.0)
    world.on_demand(demand(queued=5, service_ms=9e3), 1.0)
    decide(world, record(max_containers=3), wall=NOW)

    told = explain_scaling(world, FUNCTION, 0.0, NOW + 2.0)

    assert told.lines[0] == "It wants 3 containers (ceiling), for 2 s: max_containers=3 allows no more (5 calls wait)."
    assert told.lines[1] == "  There, or on their way: 0. To start: 3."
    assert "max_containers" in told.more_needs
    assert [(each.wanted, each.rule) for each in told.changes] == [(3, "ceiling")]
    assert told.methods == ()  # nothing is known of it before it has a container


def test_what_changed_is_told_and_what_was_then() -> None:
    """The last few in sentences; an instant before the first change is not remembered."""
    world = World()
    world.on_report(report(container("c1", running=1)), 1.0)
    for number in range(MOST_TOLD + 3):
        world.on_demand(demand(running=1, queued=number % 2, service_ms=9e3), 1.0)
        decide(world, record(max_containers=3), wall=NOW + number)

    lines = asked(world, now=NOW + 20.0)
    then = asked(world, at=NOW + 2.5, now=NOW + 20.0)

    assert lines[lines.index("Before:") + 1 :][0].startswith("  14 s ago it wanted ")
    assert len(lines) - lines.index("Before:") - 1 == MOST_TOLD
    assert then[0].startswith("It wanted 1 container (calls), for 500 ms by then: ")
    assert asked(world, at=NOW - 60.0) == ["Nothing is remembered of its scaling 60 s ago."]


def test_a_function_whose_past_does_not_count_is_told_so() -> None:
    """Whatever it would foretell."""
    world = World()
    world.on_report(report(container("c1", running=1)), 1.0)
    world.on_demand(demand(running=1, service_ms=9e3), 1.0)
    decide(world, record(forecast=False), wall=NOW)
    assert "  A start of it takes 1000 ms. What its past foretells does not count: forecast is off." in asked(world)


def test_a_function_that_was_never_called_needs_nothing() -> None:
    """And says so."""
    assert asked(World())[0].startswith("It has no container and needs none")
