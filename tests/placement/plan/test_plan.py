"""Plans: what is started, stopped, cut and moved, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.agent_messages import SliceKind, Stop
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_core.model.placing import Over, Spread
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice
from pilotlight_placement.plan.commands import PlanCommand, PlannedStart
from pilotlight_placement.plan.draft import DesiredFunction, PlanLimits
from pilotlight_placement.plan.plan import DesiredState, Plan, plan
from pilotlight_placement.search.policy import refusal_at
from tests.placement.executor import carry_out
from tests.placement.makers import ask, asks, gpu, node, some_nodes

QUIET = PlanLimits(empties=0, switches=0)


def want(name: str, count: int, wanted: Ask, **more: Any) -> DesiredFunction:
    return DesiredFunction(ask=replace(wanted, function=name), count=count, **more)


def instance(
    container: str, profile: str, start: int, gpu_id: str = "g", function: str = "f", node: str = "n"
) -> PlacedContainer:
    slice_ = Slice(
        node=node, kind=SliceKind.MIG, type="H100-80GB", ids=(gpu_id,), memory=9984, profile=profile, start=start
    )
    return PlacedContainer(container=container, slice=slice_, function=function, tenant="t")


def kinds(made: Plan) -> list[str]:
    return [type(command.command).__name__ for command in made.commands]


def test_what_is_missing_is_started_and_what_is_too_much_stopped() -> None:
    """The fleet itself is left as it was."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"), gpu("c", "T4"))])
    whole = Slice(node="n", kind=SliceKind.GPU, type="T4", ids=("a",), memory=15360)
    fleet.hold(PlacedContainer(container="old", slice=whole, function="g"))

    made = plan(fleet, DesiredState(wants=(want("f", 2, ask("T4")), want("g", 0, ask("T4"))), revision=7), 1000.0)

    assert kinds(made) == ["PlannedStart", "PlannedStart", "Stop"]
    assert [c.command.held.container for c in made.commands if isinstance(c.command, PlannedStart)] == [
        "f~7.1",
        "f~7.2",
    ]
    assert set(fleet.held) == {"old"}
    assert fleet.revision == fleet.standing


def test_a_start_waits_for_the_stop_that_frees_its_place() -> None:
    """What does not fit at first is tried again on what the plan frees."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    whole = Slice(node="n", kind=SliceKind.GPU, type="T4", ids=("a",), memory=15360)
    fleet.hold(PlacedContainer(container="old", slice=whole, function="g"))

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("T4")), want("g", 0, ask("T4")))), 0.0)

    assert kinds(made) == ["Stop", "PlannedStart"]
    assert made.commands[1].after == (0,)
    assert made.short == ()


def test_a_start_beside_an_instance_that_goes_waits_for_nothing() -> None:
    """Only what needs its memory slices does."""
    fleet = Fleet([node("n", gpu("g", mig=True))])
    fleet.hold(instance("old", "3g", 4, function="g"))

    small, large = ask("H100", gib=5), ask("H100", gib=30)
    wants = (want("f", 1, small), want("g", 0, large), want("h", 1, large))
    made = plan(fleet, DesiredState(wants=wants), 0.0, QUIET)

    waits = {c.command.held.function: c.after for c in made.commands if isinstance(c.command, PlannedStart)}
    stop = next(command.number for command in made.commands if isinstance(command.command, Stop))
    assert stop not in waits["h"]
    assert stop in waits["f"]
    carry_out(fleet, made)


def test_idle_instances_in_the_way_are_cut_anew() -> None:
    """The layout of an idle part of a GPU follows demand; instances in use stay."""
    there = tuple(MigPlacement(start=start, profile=key) for start, key in ((0, "2g"), (4, "1g"), (5, "1g")))
    fleet = Fleet([node("n", gpu("g", mig=True, instances=there))])
    fleet.hold(instance("old", "2g", 0, function="g"))

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100", gib=30, isolation=Isolation.MIG)),)), 0.0, QUIET)

    cut, start = made.commands
    assert isinstance(cut.command, Cut)
    assert cut.command.destroy == there[1:]
    assert cut.command.create == (MigPlacement(start=4, profile="3g"),)
    assert start.after == (0,)
    carry_out(fleet, made)


def test_an_instance_that_is_there_is_used_as_it_is() -> None:
    """Nothing is cut for it."""
    fleet = Fleet([node("n", gpu("g", mig=True, instances=(MigPlacement(start=6, profile="1g"),)))])

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100", gib=5)),)), 0.0, QUIET)

    assert kinds(made) == ["PlannedStart"]


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
    """Then the blocked container goes without, and says why."""
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
    """One victim without a new home, and nobody is moved."""
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


def test_an_idle_hopper_is_cut_rather_than_given_whole_for_little() -> None:
    """On Ampere the mode would need a reset, so there a whole device is given."""
    expected_of = {"H100-80GB": ["SwitchMig", "Cut", "PlannedStart"], "A100-80GB": ["PlannedStart"]}
    for kind, expected in expected_of.items():
        fleet = Fleet([node("n", gpu("g", kind))])

        made = plan(fleet, DesiredState(wants=(want("f", 1, ask("ANY", gib=5)),)), 0.0)

        assert kinds(made) == expected
        carry_out(fleet, made)


def test_idle_devices_leave_mig_mode_for_who_needs_several_whole_ones() -> None:
    """As many as are missing, on one node."""
    fleet = Fleet([node("n", gpu("a"), gpu("b", mig=True), gpu("c", mig=True))])

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100:2", gib=120)),)), 0.0)

    assert kinds(made) == ["SwitchMig", "PlannedStart"]
    carry_out(fleet, made)


@pytest.mark.parametrize(
    ("mig", "only", "commands"),
    [
        (False, "1g", ["SwitchMig", "Cut", "PlannedStart"]),
        (True, "whole", ["SwitchMig", "PlannedStart"]),
    ],
)
def test_an_idle_device_changes_its_mode_for_who_takes_one_kind_of_slice(
    mig: bool, only: str, commands: list[str]
) -> None:
    """As a trial does; in both directions, and only one of the idle ones."""
    fleet = Fleet([node("n", gpu("a", mig=mig), gpu("b", mig=mig))])
    wanted = ask("H100", gib=8, slice=f"H100-80GB/{only}")

    made = plan(fleet, DesiredState(wants=(want("f", 1, wanted),)), 0.0)

    assert kinds(made) == commands
    assert made.short == ()
    assert not fleet.held


def test_containers_of_a_draining_node_are_replaced_and_left_alone() -> None:
    """They are leaving already: whoever drains the node stops them."""
    fleet = Fleet([node("n", gpu("a", "T4")), node("m", gpu("b", "T4"))])
    whole = Slice(node="n", kind=SliceKind.GPU, type="T4", ids=("a",), memory=15360)
    fleet.hold(PlacedContainer(container="old", slice=whole, function="f"))
    fleet.drain("n")

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("T4")),)), 0.0)

    assert kinds(made) == ["PlannedStart"]
    assert isinstance(made.commands[0].command, PlannedStart)
    assert made.commands[0].command.held.slice.node == "m"


def test_the_surplus_goes_where_the_function_is_most_crowded() -> None:
    """Spread holds when a function shrinks, too."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4")), node("m", gpu("c", "T4"))])
    for name, where in (("a", "n"), ("b", "n"), ("c", "m")):
        slice_ = Slice(node=where, kind=SliceKind.GPU, type="T4", ids=(name,), memory=15360)
        fleet.hold(PlacedContainer(container=f"on-{name}", slice=slice_, function="f"))

    made = plan(fleet, DesiredState(wants=(want("f", 2, ask("T4", spread=Spread(over=Over.NODE))),)), 0.0)

    assert [command.node for command in made.commands if isinstance(command.command, Stop)] == ["n"]


def test_room_is_looked_for_only_so_often() -> None:
    """A fleet that is too small for all must not keep the controller busy."""
    fleet = Fleet([node("n", gpu("g", mig=True)), node("m", gpu("h", mig=True))])
    fleet.hold(instance("a", "1g", 0))
    fleet.hold(instance("b", "1g", 0, "h", node="m"))
    wants = (want("f", 2, ask("H100", gib=5)), want("big", 1, ask("H100", gib=70)))

    made = plan(fleet, DesiredState(wants=wants), 1e4, replace(QUIET, blocked=0))

    assert made.commands == ()
    assert made.short[0].missing == 1


def test_a_function_is_wanted_once() -> None:
    """Two counts for one name would be a contradiction."""
    with pytest.raises(ValueError, match="once"):
        plan(Fleet(), DesiredState(wants=(want("f", 1, ask("T4")), want("f", 2, ask("T4")))), 0.0)


WANTS = st.lists(st.tuples(asks(), st.integers(0, 3)), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(some_nodes(), WANTS, WANTS, st.booleans())
def test_plans_can_be_carried_out_and_break_nothing(
    nodes: list[Node], first: list[tuple[Ask, int]], then: list[tuple[Ask, int]], lost: bool
) -> None:
    """Command by command: no overlap, no illegal start, no constraint broken, no function below what it should have."""
    fleet = Fleet(nodes)
    for number, wanted in enumerate((first, then)):
        wants = tuple(want(f"f{index}", count, each) for index, (each, count) in enumerate(wanted))
        if number and lost and fleet.places:
            fleet.remove(min(fleet.places))
        before = {name: len(held) for name, held in fleet.functions.items()}
        made = plan(fleet, DesiredState(wants=wants, revision=number), 1e4 * number)
        assert made == plan(fleet, DesiredState(wants=wants, revision=number), 1e4 * number)

        def check(
            planned: PlanCommand, wants: tuple[DesiredFunction, ...] = wants, before: dict[str, int] = before
        ) -> None:
            command = planned.command
            for each in wants:
                name = each.ask.function
                assert len(fleet.functions.get(name, {})) >= min(before.get(name, 0), each.count or 0)
            if isinstance(command, PlannedStart):
                respects(fleet, command, next(w.ask for w in wants if w.ask.function == command.held.function))

        carry_out(fleet, made, check)
        for each in wants:
            missing = sum(short.missing for short in made.short if short.function == each.ask.function)
            living = [
                h for h in fleet.functions.get(each.ask.function, {}).values()
                if not fleet.places[h.slice.node].node.draining
            ]  # fmt: skip
            assert len(living) == (each.count or 0) - missing


def respects(fleet: Fleet, command: PlannedStart, wanted: Ask) -> None:
    """Without the container itself its place passes all filters."""
    with fleet.trial():
        fleet.release(command.held.container)
        place = fleet.places[command.held.slice.node]
        for name in command.held.slice.ids:
            assert refusal_at(fleet, place.by_id[name], wanted) is None


def test_starts_come_first_and_in_their_order() -> None:
    """Whose turn it is was decided elsewhere; what finds no place is short, and nothing else is stopped for it."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"))])
    first, second = replace(ask("T4"), function="f"), replace(ask("T4", gib=8), function="f")

    made = plan(fleet, DesiredState(wants=(), starts=((first, 1), (second, 2))), 0.0, QUIET)

    assert kinds(made) == ["PlannedStart", "PlannedStart"]
    outcomes = [outcome.record.ask for name, outcome in made.outcomes if name]
    assert outcomes == [first, second]
    assert [(short.refusal.record.ask, short.missing) for short in made.short] == [(second, 1)]


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
