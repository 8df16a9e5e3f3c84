"""A fleet holds what is reported and expected, by small changes as by a look at everything."""

from __future__ import annotations

import random

from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reported_holds import ReportedHolds
from pilotlight_placement.fleet.reports import node_of, slice_named
from pilotlight_placement.hardware.node import PlacedContainer
from tests.builders.nodes import cpu_slot, node_report

NODES = {name: node_of(node_report(name, slices=tuple(cpu_slot(n) for n in range(3)))) for name in ("a", "b", "c")}


def held(container: str, node: str, slot: int) -> PlacedContainer:
    slice_ = slice_named(NODES[node], f"cpu-{slot}")
    assert slice_ is not None
    return PlacedContainer(container=container, slice=slice_)


def shown(fleet: Fleet) -> dict[str, str]:
    return {name: f"{one.slice.node}/{one.slice.ids[0]}" for name, one in fleet.held.items()}


def test_step_by_step_is_as_at_once() -> None:
    """Whatever comes, goes and moves, also twice or onto a slot that is taken."""
    rng = random.Random(7)
    fleet = Fleet(NODES.values())
    holds = ReportedHolds(fleet)
    reported: dict[str, tuple[PlacedContainer, ...]] = {}
    for _ in range(300):
        node = rng.choice(sorted(NODES))
        slots = rng.sample(range(3), rng.randrange(4))
        reported = reported | {node: tuple(held(f"{node}{rng.randrange(4)}", node, slot) for slot in slots)}
        named = {one.container for one in reported[node]}
        if len(named) < len(reported[node]):
            continue  # no node reports a container twice
        holds.report(reported)
        holds.settle({})

        anew = Fleet(NODES.values())
        others = ReportedHolds(anew)
        others.report(reported)
        others.settle({})
        assert shown(fleet) == shown(anew)


def test_what_is_expected_is_held_until_it_is_reported_or_given_up() -> None:
    """And what somebody else has changed is put right."""
    fleet = Fleet(NODES.values())
    holds = ReportedHolds(fleet)
    holds.settle({"c1": held("c1", "a", 0), "c2": None})
    assert shown(fleet) == {"c1": "a/cpu-0"}

    holds.report({"a": (held("c1", "a", 1),)})
    holds.settle({})
    assert shown(fleet) == {"c1": "a/cpu-1"}

    fleet.release("c1")
    fleet.hold(held("stranger", "b", 0))
    holds.settle({})
    assert shown(fleet) == {"c1": "a/cpu-1"}


def test_a_container_of_two_nodes_takes_both_slots() -> None:
    """One report is behind; when it is not any more, one slot is free."""
    fleet = Fleet(NODES.values())
    holds = ReportedHolds(fleet)
    one = (held("c1", "a", 0),)
    holds.report({"a": one, "b": (held("c1", "b", 0),)})
    holds.settle({})
    assert len(fleet.held) == 2

    holds.report({"a": one, "b": ()})
    holds.settle({})
    assert shown(fleet) == {"c1": "a/cpu-0"}
