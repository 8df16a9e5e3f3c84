"""Devices that are kept for one ask."""

from __future__ import annotations

from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.plan.plan import DesiredState, plan
from pilotlight_placement.plan.reservation import Reservation, choose_reservation, reserve
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place
from tests.placement.makers import ask, gpu, node


def busy(fleet: Fleet, *names: str) -> None:
    """A container on each GPU that is named, as "node/GPU"."""
    for name in names:
        where, _, which = name.partition("/")
        with fleet.without([unit for unit in fleet.units.values() if (unit.node.name, unit.id) != (where, which)]):
            found = place(fleet, ask("H100"))
        assert isinstance(found, Placement)
        fleet.hold(PlacedContainer(container=name, slice=found.slice, function="zoo:app.f", tenant="zoo"))


def two_nodes() -> Fleet:
    """Four H100s of which one is free, a T4, and a node that drains."""
    fleet = Fleet([
        node("a", gpu("a1"), gpu("a2")), node("b", gpu("b1"), gpu("b2"), gpu("t", "T4")),
        node("c", gpu("c1"), gpu("c2"), draining=True),
    ])  # fmt: skip
    busy(fleet, "a/a1", "a/a2", "b/b1")
    return fleet


def test_devices_of_one_node_with_least_on_them_are_chosen() -> None:
    """Of the sort that is asked for; others than the last time, where there are others; none that are not enough."""
    fleet = two_nodes()

    assert choose_reservation(fleet, ask("H100:2")) == {("b", "b1"), ("b", "b2")}
    assert choose_reservation(fleet, ask("H100")) == {("b", "b2")}
    assert choose_reservation(fleet, ask("H100:2"), avoided={("b", "b1")}) == {("a", "a1"), ("a", "a2")}
    assert choose_reservation(fleet, ask("H100:4")) == frozenset()
    assert choose_reservation(fleet, ask()) == frozenset()


def test_devices_in_the_other_mode_will_do_where_that_is_switched_without_a_reset() -> None:
    """Once they are empty."""
    hopper, ampere = Fleet([node("a", gpu("a1", mig=True))]), Fleet([node("a", gpu("a1", "A100-80GB", mig=True))])

    assert choose_reservation(hopper, ask("H100:1")) == {("a", "a1")}
    assert choose_reservation(ampere, ask("A100:2")) == frozenset()


def test_what_is_kept_is_given_to_nobody_and_is_there_all_the_same() -> None:
    """Present containers stay, and refusals do not say that there is no such device; it ends with the trial."""
    fleet = two_nodes()
    kept = Reservation(ask=ask("H100:2", function="acme:app.pair"), devices=frozenset({("b", "b1"), ("b", "b2")}))
    with fleet.trial():
        reserve(fleet, kept)
        check_integrity(fleet)

        refused = place(fleet, ask("H100"))
        assert isinstance(refused, NoFit)
        assert not refused.never
        assert "b/b1" in fleet.held
        assert isinstance(place(fleet, ask("T4")), Placement)
        fleet.release("b/b1")
        check_integrity(fleet)
        assert isinstance(place(fleet, ask("H100")), NoFit)

    check_integrity(fleet)
    assert isinstance(place(fleet, ask("H100")), Placement)


def test_whoever_it_is_kept_for_comes_first_and_then_the_others() -> None:
    """As soon as all of it is free; before that no other ask gets a part of it."""
    fleet = two_nodes()
    pair, single = ask("H100:2", function="acme:app.pair"), ask("H100", function="acme:app.one")
    kept = Reservation(ask=pair, devices=choose_reservation(fleet, pair))
    starts = ((single, 1), (pair, 1))

    made = plan(fleet, DesiredState(wants=(), starts=starts, kept=kept), 0.0)
    assert (made.commands, {short.function for short in made.short}) == ((), {"acme:app.one", "acme:app.pair"})
    elsewhere = plan(fleet, DesiredState(wants=(), starts=starts[:1], kept=kept), 0.0)
    assert elsewhere.commands == ()

    fleet.release("b/b1")
    made = plan(fleet, DesiredState(wants=(), starts=starts, kept=kept), 0.0)
    assert [short.function for short in made.short] == ["acme:app.one"]
    assert len(made.commands) == 1
