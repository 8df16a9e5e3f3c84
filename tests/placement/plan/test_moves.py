"""Moves: room for a blocked container, and devices that are emptied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.node_messages import Stop
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import ParkedPlace
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.draft import DesiredFunction, PlanLimits
from pilotlight_placement.plan.plan import DesiredState, plan
from tests.placement.executor import carry_out
from tests.placement.makers import QUIET, ask, gpu, instance, kinds, node, want


def test_room_is_made_by_moving_what_is_in_the_way_first_elsewhere() -> None:
    """The copy starts, then the original stops, then the blocked container starts on its place."""
    fleet = Fleet([node("n", gpu("g", mig=True)), node("m", gpu("h", mig=True))])
    fleet.hold(instance("a", "1g", 0))
    fleet.hold(instance("b", "1g", 0, "h", node="m"))
    small, large = want("f", 2, ask("H100", gib=5)), want("big", 1, ask("H100", gib=70))

    made = plan(fleet, DesiredState(wants=(small, large)), 10_000.0, QUIET)

    starts = [(each, each.command) for each in made.commands if isinstance(each.command, PlannedStart)]
    stops = [(each, each.command) for each in made.commands if isinstance(each.command, Stop)]
    (copy, copied), (large_start, started) = starts
    ((stop, stopped),) = stops
    assert made.short == ()
    assert copied.replaces == stopped.container
    assert stop.after == (copy.number,)
    assert started.held.function == "big"
    assert stop.number in large_start.after
    assert len({command.group for command in made.commands}) == 1
    carry_out(fleet, made)


@pytest.mark.parametrize("reason", ["young", "not movable", "too dear", "draining"])
def test_what_may_not_be_moved_is_not(reason: str) -> None:
    """The blocked container then has no place, with the reason."""
    draining = reason == "draining"
    fleet = Fleet([node("n", gpu("g", mig=True)), node("m", gpu("h", mig=True), draining=False)])
    fleet.hold(instance("a", "1g", 0))
    fleet.hold(instance("b", "1g", 0, "h", node="m"))
    if draining:
        fleet.drain("n")
    small = want("f", 1 if draining else 2, ask("H100", gib=5), movable=reason != "not movable")
    if reason == "too dear":
        small = replace(small, load_s=QUIET.move_s + 1)

    made = plan(
        fleet,
        DesiredState(wants=(small, want("big", 1, ask("H100", gib=70)))),
        10.0 if reason == "young" else 1e4,
        QUIET,
    )

    assert made.commands == ()
    assert [(short.function, short.missing) for short in made.short] == [("big", 1)]
    assert "in use" in made.short[0].refusal.reason


def test_all_that_is_in_the_way_moves_or_nothing_does() -> None:
    """If one victim finds no place, none moves."""
    fleet = Fleet([node("n", gpu("g", mig=True)), node("m", gpu("h", mig=True))])
    for start in range(4):
        fleet.hold(instance(f"a{start}", "1g", start))
    fleet.hold(instance("b", "4g", 0, "h", function="x", node="m"))
    fleet.hold(instance("c", "2g", 4, "h", function="x", node="m"))

    made = plan(
        fleet, DesiredState(wants=(want("f", 4, ask("H100", gib=5)), want("big", 1, ask("H100", gib=70)))), 1e4, QUIET
    )

    assert made.commands == ()


def test_a_hardly_used_device_is_emptied_onto_one_in_use() -> None:
    """Never the other way, and never onto an empty one."""
    fleet = Fleet([node("n", gpu("g", mig=True)), node("m", gpu("h", mig=True)), node("o", gpu("i", mig=True))])
    fleet.hold(instance("a", "1g", 6))
    fleet.hold(instance("b", "3g", 0, "h", function="x", node="m"))

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100", gib=5)),)), 1e4, PlanLimits(switches=0))

    assert kinds(made) == ["Cut", "PlannedStart", "Stop"]
    assert isinstance(made.commands[1].command, PlannedStart)
    assert made.commands[1].command.held.slice.ids == ("h",)
    carry_out(fleet, made)
    again = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100", gib=5)),)), 2e4, PlanLimits(switches=0))
    assert again.commands == ()


def test_nothing_that_is_parked_ends_so_that_a_device_is_emptied() -> None:
    """For a container that has no place it does."""
    there = (MigPlacement(start=4, profile="3g"),)
    parked = (ParkedPlace("p", "u", "h", "3g", 4),)
    fleet = Fleet([node("n", gpu("g", mig=True)), node("m", gpu("h", mig=True, instances=there), parked=parked)])
    fleet.hold(instance("a", "3g", 4))
    fleet.hold(instance("b", "4g", 0, "h", function="x", node="m"))
    wants = (want("f", 1, ask("H100", gib=38, slice="H100-80GB/3g")),)

    assert plan(fleet, DesiredState(wants=wants), 1e4, PlanLimits(switches=0)).commands == ()
    fleet.put(replace(fleet.places["m"].node, parked=()))
    assert "Stop" in kinds(plan(fleet, DesiredState(wants=wants), 1e4, PlanLimits(switches=0)))


def test_what_is_wanted_as_it_is_may_be_moved_and_nothing_else() -> None:
    """No count: neither more nor fewer; room is made of it for a start."""
    fleet = Fleet([node("n", gpu("a", mig=True)), node("m", gpu("b", mig=True))])
    fleet.hold(instance("one", "1g", 6, gpu_id="a", node="n"))
    fleet.hold(instance("two", "1g", 6, gpu_id="b", node="m"))
    small, large = replace(ask("H100", gib=8), function="f"), replace(ask("H100", gib=60), function="g")
    as_it_is = DesiredState(wants=(DesiredFunction(ask=small, count=None),), starts=((large, 1),))

    made = plan(fleet, as_it_is, 1e6, PlanLimits(empties=0))

    assert sorted(kinds(made)) == ["Cut", "Cut", "PlannedStart", "PlannedStart", "Stop"]
    starts = [each.command for each in made.commands if isinstance(each.command, PlannedStart)]
    copies = [start for start in starts if start.replaces]
    assert [command.replaces in ("one", "two") for command in copies] == [True]
    assert plan(fleet, DesiredState(wants=as_it_is.wants), 1e6, QUIET).commands == ()


def test_no_original_stops_before_all_copies_of_its_group_are_there() -> None:
    """If one of them cannot be made ready, nothing was given up for nothing."""
    fleet = Fleet([node("n", gpu("a", mig=True)), node("m", gpu("b", mig=True))])
    for name, start in (("one", 6), ("two", 5)):
        fleet.hold(instance(name, "1g", start, gpu_id="a", node="n"))
    fleet.hold(instance("third", "3g", 0, gpu_id="b", node="m", function="h"))
    small, large = replace(ask("H100", gib=8), function="f"), replace(ask("H100", gib=60), function="g")

    made = plan(
        fleet,
        DesiredState(wants=(DesiredFunction(ask=small, count=None),), starts=((large, 1),)),
        1e6,
        PlanLimits(empties=0),
    )

    copies = {each.number for each in made.commands if isinstance(each.command, PlannedStart) and each.command.replaces}
    stops = [command for command in made.commands if isinstance(command.command, Stop)]
    assert len(copies) == len(stops) == 2
    assert all(copies <= set(command.after) for command in stops)
