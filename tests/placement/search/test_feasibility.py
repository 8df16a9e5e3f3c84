"""Whether a request could ever be met."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from pilotlight_core.model.messages.agent_messages import SliceKind
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.feasibility import could_hold
from pilotlight_placement.search.place import place
from tests.placement.makers import ask, asks, cpu, gpu, node, some_nodes


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


def test_the_largest_slice_and_what_is_missing_are_named() -> None:
    """Of the types asked for."""
    fleet = Fleet([node("n", gpu("a", "A30", mig=True), gpu("b", "H100-80GB"))])

    told = refused(fleet, ask("A30", gib=30))

    assert told.never
    assert told.reason == (
        "it asks for A30 with 30.0 GiB, and the fleet has 1 A30, 1 H100-80GB; the largest slice that exists is "
        "4g.24gb of A30 with 23.4 GiB: 6.6 GiB are missing"
    )


def test_what_else_rules_everything_out_is_said() -> None:
    """Where it is not memory."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="x")])

    assert refused(fleet, ask("T4", zones=("y",))).reason.endswith("the fleet has 1 T4: there is no zone y; there is x")


def test_a_type_a_region_or_a_purchase_that_there_is_not_is_named_with_what_there_is() -> None:
    """Only devices of the types asked for are counted as being elsewhere."""
    fleet = Fleet([
        node("n", gpu("a"), slots=(cpu(0), cpu(1)), host_memory=16 * GIB, region="east"),
        node("m", slots=(cpu(2),), host_memory=32 * GIB, region="west"),
    ])  # fmt: skip

    def reason(*types: str, **more: Any) -> str:
        return refused(fleet, ask(*types, **more)).reason

    assert reason("H1000").endswith("there is no GPU type H1000 in the catalogue: did you mean H100?")
    assert "did you mean H100? (vram= gets a part of one)" in reason("H100-MIG-1G")
    assert reason("ANY", regions=("mars",)).endswith("there is no region mars; there is east, west")
    assert reason("H100", regions=("west",)).endswith(": 1 in other regions")
    assert reason("H100", purchase=Purchase.SPOT).endswith(": 1 not on spot nodes")
    assert reason("ANY", purchase=Purchase.SPOT).startswith("it asks for any GPU, and")
    assert reason("H100", memory=2048 * GIB).endswith(
        "no node with such a device or slot has more than 16.0 GiB of host memory"
    )


@pytest.mark.parametrize("isolation", list(Isolation))
def test_what_is_taken_is_not_impossible(isolation: Isolation) -> None:
    """It waits."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    found = place(fleet, ask("T4"))
    assert isinstance(found, Placement)
    fleet.hold(PlacedContainer(container="c", slice=found.slice))

    assert not refused(fleet, ask("T4", isolation=isolation)).never


def test_a_withdrawn_device_holds_nothing() -> None:
    """It may never come back."""
    fleet = Fleet([node("n", gpu("a", "T4", withdrawn="it is lost"))])

    assert refused(fleet, ask("T4")).never


@settings(max_examples=150, deadline=None)
@given(some_nodes(), asks())
def test_what_fits_an_empty_fleet_could_be_held(nodes: list[Node], wanted: Ask) -> None:
    """And whoever hears "never" finds no place in an empty fleet, in whatever mode its GPUs are."""
    fleet = Fleet(nodes)
    found = place(fleet, wanted)

    if isinstance(found, Placement):
        assert could_hold(fleet, wanted)
    elif found.never and wanted.memory <= 64 * GIB:
        assert not could_hold(fleet, wanted)


def test_what_only_another_mode_could_hold_is_told_by_what_is_idle() -> None:
    """Nothing is said to be in use that is not."""
    fleet = Fleet([node("n", gpu("a"))])
    wanted = ask("H100", gib=8, slice="H100-80GB/1g")

    assert refused(fleet, wanted).reason.endswith(
        "are in the other MIG mode: 1, of which 1 is idle and can be switched"
    )

    whole = Slice(node="n", kind=SliceKind.GPU, type="H100-80GB", ids=("a",), memory=81559)
    fleet.hold(PlacedContainer(container="c", slice=whole, function="g"))
    assert refused(fleet, wanted).reason.endswith("are in use, in the other MIG mode")
