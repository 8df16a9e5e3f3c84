"""Bindings end with their containers."""

from __future__ import annotations

from pilotlight_autoscaler.bindings.binding_cleanup import LOST_S, MISSING_S, EndedBindings
from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import ContainerState
from tests.autoscaler.builders import report
from tests.builders.nodes import bind, binding, container

BOUND = [binding("c1")]


def due(ended: EndedBindings, world: World, at: float) -> list[Binding]:
    known = {binding.container: binding for binding in BOUND}
    return ended.due([known[name] for name in world.absent(known.keys())], world.nodes, at)


def test_a_container_that_its_node_reports_no_more_has_ended() -> None:
    """After some reports without it, and not while it is there."""
    world, ended = World(), EndedBindings()
    world.on_report(report(container("c1"), seq=1), 0.0)
    assert due(ended, world, 0.0) == []
    world.on_report(report(seq=2), 1.0)
    assert due(ended, world, 1.0) == []
    assert due(ended, world, 1.0 + MISSING_S) == BOUND


def test_one_that_comes_back_begins_anew() -> None:
    """A report may be older than the command."""
    world, ended = World(), EndedBindings()
    world.on_report(report(seq=1), 0.0)
    assert due(ended, world, 0.0) == []
    world.on_report(report(container("c1"), seq=2), 1.0)
    assert due(ended, world, 1.0) == []
    world.on_report(report(seq=3), MISSING_S)
    assert due(ended, world, MISSING_S) == []


def test_one_whose_command_is_on_its_way_is_waited_for() -> None:
    """It is not in a report yet."""
    world, ended = World(), EndedBindings()
    world.on_report(report(), 0.0)
    world.pending["c1"] = PendingBind(bind=bind("c1"), node="n1", at=0.0)
    assert due(ended, world, 100.0) == []
    assert due(ended, world, 200.0) == []


def test_a_silent_node_may_come_back() -> None:
    """With its containers; not for ever."""
    world, ended = World(), EndedBindings()
    assert due(ended, world, 0.0) == []
    assert due(ended, world, LOST_S - 1.0) == []
    assert due(ended, world, LOST_S) == BOUND


def test_a_container_that_is_gone_is_none() -> None:
    """Though it is still reported."""
    world, ended = World(), EndedBindings()
    world.on_report(report(container("c1", state=ContainerState.GONE)), 0.0)
    assert due(ended, world, 0.0) == []
    assert due(ended, world, MISSING_S) == BOUND
