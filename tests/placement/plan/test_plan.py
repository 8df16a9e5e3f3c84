"""Plans: what is started, stopped, cut and moved, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import SliceKind, Stop
from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice
from pilotlight_placement.plan.commands import PlanCommand, PlannedStart
from pilotlight_placement.plan.draft import DesiredFunction
from pilotlight_placement.plan.plan import DesiredState, plan
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.filters import refusal_at
from pilotlight_placement.search.place import place
from tests.example_counts import SLOW, examples
from tests.placement.executor import carry_out
from tests.placement.makers import QUIET, ask, asks, gpu, host, instance, kinds, node, some_nodes, want


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


def test_containers_of_a_draining_node_are_replaced_and_left_alone() -> None:
    """Their agent stops them itself."""
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


def test_a_start_waits_for_the_stop_that_frees_its_host() -> None:
    """Its device was free all the while; a start that needs nothing of what is freed waits for nobody."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"), gpu("c", "L4"), host=host(8, 24))])
    old, large = ask("L4", memory=20 * GIB), ask("T4", memory=20 * GIB)
    found = place(fleet, replace(old, function="old"))
    assert isinstance(found, Placement)
    fleet.hold(found.held("old"))
    wants = (want("old", 0, old), want("new", 1, large), want("small", 1, ask("T4", memory=GIB)))

    made = plan(fleet, DesiredState(wants=wants), 0.0)

    after = {c.command.held.function: c.after for c in made.commands if isinstance(c.command, PlannedStart)}
    (stop,) = [command.number for command in made.commands if isinstance(command.command, Stop)]
    assert after == {"small": (), "new": (stop,)}


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


@examples(40, fewer=SLOW)
@given(some_nodes(), WANTS)
def test_a_plan_that_is_kept_leaves_the_fleet_as_if_it_was_carried_out(
    nodes: list[Node], wanted: list[tuple[Ask, int]]
) -> None:
    """Its commands are the same."""
    planned, kept = Fleet(nodes), Fleet(nodes)
    state = DesiredState(wants=tuple(want(f"f{index}", count, each) for index, (each, count) in enumerate(wanted)))

    made = plan(planned, state, 0.0)
    carry_out(planned, made)

    assert plan(kept, state, 0.0, keep=True).commands == made.commands
    assert kept.held == planned.held
    assert {name: place.node for name, place in kept.places.items()} == {
        name: place.node for name, place in planned.places.items()
    }
    check_integrity(kept)


@examples(80)
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
