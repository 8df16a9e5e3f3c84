"""Whether a request could ever be met."""

from __future__ import annotations

from hypothesis import given

from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.feasibility import could_hold
from pilotlight_placement.search.place import place
from tests.example_counts import examples
from tests.placement.makers import ask, asks, gpu, node, some_nodes


def refused(fleet: Fleet, wanted: Ask) -> NoFit:
    found = place(fleet, wanted)
    assert isinstance(found, NoFit)
    return found


def test_more_gpus_than_any_node_has_never_fit() -> None:
    """Four in the fleet are not two on one node."""
    fleet = Fleet([node(name, gpu(f"{name}0", "T4")) for name in "abcd"])

    assert refused(fleet, ask("T4:2")).never
    assert refused(fleet, ask("T4:2")).reason == (
        "it asks for T4:2, and the fleet has 4 T4s: no node has so many of them"
    )
    cut = Fleet([node("n", gpu("a", mig=True), gpu("b", mig=True), gpu("c"))])
    assert refused(cut, ask("H100:4")).reason.endswith(": no node has so many of them, 2 that are given one at a time")


def test_a_mode_that_can_be_switched_is_no_obstacle_and_one_that_needs_a_reset_is() -> None:
    """Two Hopper GPUs in MIG mode can be given whole; two of Ampere cannot."""
    hopper = Fleet([node("n", gpu("a", mig=True), gpu("b", mig=True))])
    ampere = Fleet([node("n", gpu("a", "A100-80GB", mig=True), gpu("b", "A100-80GB", mig=True))])

    assert not refused(hopper, ask("H100:2")).never
    assert refused(ampere, ask("A100:2")).never


def test_a_withdrawn_device_holds_nothing() -> None:
    """It may never come back."""
    fleet = Fleet([node("n", gpu("a", "T4", withdrawn="it is lost"))])

    assert refused(fleet, ask("T4")).never


@examples(150)
@given(some_nodes(), asks())
def test_what_fits_an_empty_fleet_could_be_held(nodes: list[Node], wanted: Ask) -> None:
    """An ask with `never` finds no place in an empty fleet, in any mode of its GPUs."""
    fleet = Fleet(nodes)
    found = place(fleet, wanted)

    if isinstance(found, Placement):
        assert could_hold(fleet, wanted)
    elif found.never and wanted.memory <= 64 * GIB:
        assert not could_hold(fleet, wanted)
