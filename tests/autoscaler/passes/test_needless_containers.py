"""Containers that nobody wants end."""

from __future__ import annotations

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.node_messages import ContainerState, Drain
from tests.autoscaler.builders import decide, demand, record, report
from tests.builders.nodes import container


def test_what_is_shut_down_ends_whatever_it_does() -> None:
    """Starting, serving or leaving already: its grace is the bound, and calls that wait hear that nothing will come."""
    world = World(draining={"c2": 0.5})
    states = (ContainerState.LOADING, ContainerState.READY, ContainerState.DRAINING)
    there = [container(f"c{n}", running=1, state=state, slice=f"cpu-{n}") for n, state in enumerate(states)]
    world.on_report(report(*there), 1.0)
    world.on_demand(demand(queued=3), 1.0)

    decision = decide(world, record(min_containers=3), shut_down={"ver_1": "its app is stopped"}, stop_grace_s=30.0)

    assert [sent.command for sent in decision.commands] == [
        Drain(epoch=7, container=f"c{n}", within_ms=30_000.0, reason="its app is stopped") for n in range(3)
    ]
    (shortage,) = decision.shortages
    assert (shortage.shut_down, shortage.never, shortage.reason) == (True, True, "its app is stopped")
    assert decide(world, record(), at=1.3, shut_down={"ver_1": "its app is stopped"}).commands == []


def test_containers_without_a_record_are_ended_too() -> None:
    """Their version was deleted."""
    world = World()
    world.on_report(report(container("c1", "ver_gone", running=1)), 1.0)

    (sent,) = decide(world, shut_down={"ver_gone": "its version is deleted"}).commands

    assert isinstance(sent.command, Drain)


def test_what_has_long_been_idle_ends_once() -> None:
    """Not again while a plan under way ends it already, and not what its version keeps."""
    world = World()
    there = [container(f"c{n}", idle_s=1e6 + n, slice=f"cpu-{n}") for n in range(2)]
    world.on_report(report(*there), 1.0)

    kept_one = decide(world, record(min_containers=1))
    assert [sent.command.container for sent in kept_one.commands if isinstance(sent.command, Drain)] == ["c1"]
    assert "idle for" in kept_one.notes[0]

    world.draining["c1"] = 1.0
    assert decide(world, record(min_containers=1), at=1.2).commands == []
