"""The indexed search against scoring every device by the policy's own lists."""

from __future__ import annotations

from hypothesis import given, settings

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.candidate import Candidate, candidate_on, slice_of
from pilotlight_placement.search.decision_record import NoFit, Placement, Value
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import STEPS, first_difference, refusal_at
from tests.placement.makers import CHURN, asks, fill, some_nodes


def every_candidate(fleet: Fleet, wanted: Ask) -> list[tuple[Value, Candidate]]:
    """Every place on the devices that pass all filters, sorted by the policy's own steps."""
    passing = [unit for unit in fleet.units.values() if refusal_at(fleet, unit, wanted) is None]
    found = [
        candidate
        for unit in passing
        for offer in fleet.offers_in(wanted, unit.group)
        if (candidate := candidate_on(offer, wanted, unit)) is not None
    ]
    keys = [step.key_for(fleet, wanted) for step in STEPS]
    values = [Value._make(key(candidate) for key in keys) for candidate in found]
    return sorted(zip(values, found, strict=True))


@settings(max_examples=150, deadline=None)
@given(some_nodes(), CHURN, asks())
def test_the_index_finds_what_the_policy_says(nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask) -> None:
    """Of all places on devices that pass all filters, the smallest by the steps in their order."""
    fleet = Fleet(nodes)
    fleet.retune({})
    fill(fleet, steps)

    every = every_candidate(fleet, wanted)
    found = place(fleet, wanted)

    if not every:
        assert isinstance(found, NoFit)
        return
    assert isinstance(found, Placement)
    assert found.record.value == every[0][0]
    assert found.slice == slice_of(fleet, every[0][1])
    for rival in found.record.rivals:
        better = [value for value, _ in every[1:] if first_difference(every[0][0], value) == rival.step]
        assert rival.value == min(better)
    assert {r.step for r in found.record.rivals} <= {first_difference(every[0][0], value) for value, _ in every[1:]}


@settings(max_examples=40, deadline=None)
@given(some_nodes(), CHURN)
def test_the_same_fleet_decides_alike_whoever_came_first(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """The order in which nodes were added changes nothing."""
    one, other = Fleet(nodes), Fleet(reversed(nodes))

    fill(one, steps)
    fill(other, steps)

    assert one.held == other.held
