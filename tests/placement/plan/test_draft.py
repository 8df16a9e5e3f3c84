"""What the commands of a draft wait for, and which instances they cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.device_commands import Cut
from pilotlight_core.model.messages.node_messages import SliceKind, Stop
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import ParkedPlace, PlacedContainer, Slice
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.plan import DesiredState, plan
from tests.placement.executor import carry_out
from tests.placement.makers import QUIET, ask, gpu, instance, kinds, node, want


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


def test_what_is_parked_in_the_way_ends_before_the_cut() -> None:
    """As a part of the plan, which says for whom; what is parked elsewhere stays."""
    there = tuple(MigPlacement(start=start, profile=key) for start, key in ((0, "4g"), (4, "3g")))
    parked = (ParkedPlace("p1", "t", "g", "4g", 0), ParkedPlace("p2", "t", "g", "3g", 4))
    fleet = Fleet([node("n", gpu("g", mig=True, instances=there), parked=parked)])

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100", gib=5, tenant="t")),)), 0.0, QUIET)

    stop, cut, start = made.commands
    assert isinstance(stop.command, Stop)
    assert isinstance(cut.command, Cut)
    assert "is needed for f" in stop.command.reason
    ended = next(at for at in parked if at.container == stop.command.container)
    assert cut.command.destroy == (MigPlacement(start=ended.start, profile=ended.profile),)
    assert cut.after == (stop.number,)
    assert set(start.after) == {stop.number, cut.number}
    carry_out(fleet, made)
    assert [at.container for at in fleet.places["n"].node.parked] == [at.container for at in parked if at != ended]


def test_what_another_tenant_has_parked_ends_before_a_start_beside_it() -> None:
    """On a whole GPU, and on its very instance; nothing is cut."""
    whole = node("n", gpu("g", "T4"), parked=(ParkedPlace("p", "t", "g"),))
    there = (MigPlacement(start=0, profile="7g"),)
    part = node("n", gpu("g", mig=True, instances=there), parked=(ParkedPlace("p", "t", "g", "7g", 0),))
    for one, wanted in ((whole, ask("T4", tenant="u")), (part, ask("H100", gib=70, tenant="u"))):
        fleet = Fleet([one])
        made = plan(fleet, DesiredState(wants=(want("f", 1, wanted),)), 0.0, QUIET)
        assert kinds(made) == ["Stop", "PlannedStart"]
        assert made.commands[1].after == (0,)
        assert fleet.places["n"].node == one
        carry_out(fleet, made)
        own = plan(Fleet([one]), DesiredState(wants=(want("f", 1, replace(wanted, tenant="t")),)), 0.0, QUIET)
        assert kinds(own) == ["PlannedStart"]


@pytest.mark.parametrize(("profile", "start"), [("3g", 99), ("3g", 6), ("7g", 3), ("1g", 8)])
def test_what_a_node_says_is_parked_where_no_instance_can_lie_is_nowhere(profile: str, start: int) -> None:
    """Its masks would lead out of the tables of its GPU, and end the pass."""
    parked = (ParkedPlace("p", "u", "g", profile, start),)
    fleet = Fleet([node("n", gpu("g", mig=True), parked=parked)])

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100", gib=5, tenant="t")),)), 0.0, QUIET)

    assert kinds(made) == ["Cut", "PlannedStart"]


def test_a_switch_of_the_mode_ends_what_is_parked_and_others_are_switched_first() -> None:
    """Its instance goes with the mode, whoever's it is."""
    parked = (ParkedPlace("p", "t", "a"),)
    wanted = want("f", 1, ask("H100", gib=8, slice="H100-80GB/1g", tenant="t"))
    both = Fleet([node("n", gpu("a"), gpu("b"), parked=parked)])
    assert kinds(plan(both, DesiredState(wants=(wanted,)), 0.0)) == ["SwitchMig", "Cut", "PlannedStart"]
    fleet = Fleet([node("n", gpu("a"), parked=parked)])
    made = plan(fleet, DesiredState(wants=(wanted,)), 0.0)
    assert kinds(made) == ["Stop", "SwitchMig", "Cut", "PlannedStart"]
    assert made.commands[1].after == (0,)
    carry_out(fleet, made)
