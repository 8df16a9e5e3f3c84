"""What callers hear whose version gets no container."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.command_sender import subject_of_command
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.node_messages import Drain
from tests.autoscaler.builders import decide, demand, limits, record, report
from tests.builders.nodes import container


def test_without_a_node_calls_are_told_what_is_missing() -> None:
    """There is no bind; the shortage has the reason, and that nothing could ever fit."""
    world = World()
    world.on_demand(demand(queued=1), 1.0)

    decision = decide(world, record())

    assert decision.commands == []
    assert decision.shortages[0].never
    assert "the fleet has nothing" in decision.shortages[0].reason


def test_at_its_limit_a_tenants_idle_containers_give_way_to_its_calls() -> None:
    """Not to its floors, and nobody else's do."""
    world = World()
    idle = [container(f"c{n}", "ver_2", idle_s=5.0 + n, slice=f"cpu-{n}") for n in range(2)]
    strange = container("c9", "ver_z", tenant="zoo", idle_s=50.0, slice="cpu-3")
    world.on_report(report(*idle, strange), 1.0)
    other = msgspec.structs.replace(record("ver_z"), tenant="zoo", app="zoo")
    known = (record(min_containers=1), record("ver_2"), other)
    assert decide(world, *known, **limits(containers=2)).commands == []

    world.on_demand(demand(queued=1), 1.0)
    decision = decide(world, *known, **limits(containers=2))

    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c1")]


def test_at_its_limit_what_is_replaced_is_no_room_for_others() -> None:
    """It stays until another is there: an idle container gives way all the same."""
    world = World(replacing={"c1": 0.9})
    there = (container("c1", "ver_3", running=1, slice="cpu-1"), container("c2", "ver_2", idle_s=9.0, slice="cpu-2"))
    world.on_report(report(*there), 1.0)
    world.on_demand(demand(queued=1), 1.0)

    decision = decide(world, record(), record("ver_2"), record("ver_3"), **limits(containers=2))

    assert [(type(s.command), subject_of_command(s.command)) for s in decision.commands] == [(Drain, "c2")]
