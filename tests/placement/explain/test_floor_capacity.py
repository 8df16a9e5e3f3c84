"""How many containers of one ask a fleet holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import given

from pilotlight_core.model.placing import Over, Spread
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.explain.floor_capacity import containers_that_fit, instances, most_containers
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.geometry import layouts
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.feasibility import could_hold
from pilotlight_placement.search.place import place
from tests.example_counts import examples
from tests.placement.makers import ask, asks, cpu, gpu, host, node, some_nodes

FLEET = (
    node("a", gpu("g1", mig=True), gpu("g2"), zone="x", slots=(cpu(0), cpu(1)), host=host(64, 8)),
    node("b", gpu("g3", "T4"), gpu("g4", "T4"), gpu("g5", "T4"), zone="x"),
    node("c", gpu("g6", "L4", shareable=True), gpu("g7", "A100-80GB"), zone="y"),
)


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        (ask("H100", gib=8), 14),  # seven on each: the other one is switched to MIG mode
        (ask("H100", gib=36), 4),
        (ask("H100", gib=60), 2),
        (ask("H100"), 2),
        (ask("H100:2"), 1),
        (ask("T4"), 3),
        (ask("T4:2"), 1),
        (ask("T4:2", "T4", gib=20), 1),  # of one it would not have enough
        (ask("L4", gib=5), 4),
        (ask("L4", gib=5, isolation=Isolation.EXCLUSIVE), 1),
        (ask("A100", gib=8), 1),  # Ampere is not switched
        (ask("ANY", gib=8), 14 + 3 + 2 + 1),
        (ask("CPU"), 2),
        (ask(memory=4 * GIB), 2),
        (ask(memory=16 * GIB), 0),
        (ask("H100", gib=8, media=True), 2),
        (ask("T4", spread=Spread(over=Over.NODE, most=2)), 2),
        (ask("ANY", gib=8, spread=Spread(over=Over.ZONE, most=4)), 4 + 3),
        (ask("ANY", gib=8, zones=("y",)), 3),
        (ask("B200"), 0),
    ],
)
def test_what_a_free_fleet_holds(wanted: Ask, held: int) -> None:
    """By device, mode, share, node and domain; used parts count as free."""
    fleet = Fleet(FLEET)
    assert most_containers(fleet, wanted) == held

    for number in range(100):
        if isinstance(found := place(fleet, ask("ANY", gib=3)), Placement):
            fleet.hold(PlacedContainer(container=f"other{number}", slice=found.slice))
    assert most_containers(fleet, wanted) == held


def test_what_finds_a_place_now_is_beside_who_is_there() -> None:
    """One after the other; MIG mode is as it is, and the fleet is left as it was."""
    fleet = Fleet(FLEET)
    found = place(fleet, ask("T4"))
    assert isinstance(found, Placement)
    fleet.hold(PlacedContainer(container="other", slice=found.slice))
    revision = fleet.revision

    assert containers_that_fit(fleet, ask("T4", function="f"), 5) == 2
    assert containers_that_fit(fleet, ask("H100", gib=8, function="f"), 20) == 8
    assert containers_that_fit(fleet, ask("H100", gib=8, function="f"), 3) == 3
    assert containers_that_fit(fleet, ask("L4", gib=5, function="f", tenant="t"), 9) == 4
    assert containers_that_fit(fleet, ask("T4", function="f", spread=Spread(over=Over.ZONE, most=1)), 5) == 1
    assert containers_that_fit(fleet, ask("B200", function="f"), 5) == 0
    assert (fleet.revision, list(fleet.held)) == (revision, ["other"])
    check_integrity(fleet)


@pytest.mark.parametrize("kind", ["H100-80GB", "A30"])
def test_instances_are_counted_as_the_layouts_count_them(kind: str) -> None:
    """For every set of up to three profiles, against the enumeration of all layouts."""
    family = standard()[kind].family
    assert family is not None
    plain = [profile for profile in family.profiles if not profile.media]
    for chosen in chain.from_iterable(combinations(plain, size) for size in (1, 2, 3)):
        longest = max(len(layout) for layout in layouts(family, [profile.key for profile in chosen]))
        assert instances(family, frozenset(profile.index for profile in chosen)) == longest


@examples(150)
@given(some_nodes(most=3), asks())
def test_no_fleet_ever_holds_more_and_none_says_nothing(nodes: list[Node], wanted: Ask) -> None:
    """What finds places one after the other never exceeds it; it is 0 just where nothing could be held."""
    wanted = replace(wanted, avoid=())
    fleet = Fleet(nodes)
    bound = most_containers(fleet, wanted)

    assert containers_that_fit(fleet, wanted, bound + 1) <= bound
    assert (bound > 0) == could_hold(fleet, wanted)
