"""The indexed search against scoring every device by the policy's own lists."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.decision_record import NoFit, Placement, Value
from pilotlight_placement.search.place import place, slice_at
from pilotlight_placement.search.policy import refusal_at
from pilotlight_placement.search.search import Candidate, at_unit
from tests.placement.makers import asks, some_nodes

STEPS = st.lists(st.tuples(asks(), st.integers(0, 3)), min_size=1, max_size=16)


def fill(fleet: Fleet, steps: list[tuple[Ask, int]]) -> None:
    """Place the asks one after another, and now and then release the oldest container."""
    for number, (wanted, luck) in enumerate(steps):
        found = place(fleet, wanted)
        if isinstance(found, Placement):
            fleet.hold(
                PlacedContainer(
                    container=f"c{number:03}", slice=found.slice, function=wanted.function, tenant=wanted.tenant,
                    neighbours=wanted.neighbours,
                )
            )  # fmt: skip
        if luck == 0 and fleet.held:
            fleet.release(min(fleet.held))


def values(fleet: Fleet, unit: Unit, wanted: Ask) -> list[tuple[Value, Candidate]]:
    """Every place on a unit in the terms of the policy's steps, by their definitions."""
    domain, spread = unit.node.node.domain, 0
    if wanted.spread is not None and wanted.spread.over is Over.NODE:
        spread = fleet.nodes_of(wanted.function).get(unit.node.rank, 0)
    elif wanted.spread is not None:
        spread = fleet.zones(wanted.function).get((domain.region, domain.zone), 0)
    cold = bool(wanted.weights) and wanted.weights not in unit.node.node.weights
    found = []
    for offer in fleet.offers_in(wanted, unit.cell):
        if (at := at_unit(offer, wanted, unit)) is not None:
            value = Value(offer.option.choice, spread, int(cold), offer.level, *at.key, at.cut, unit.rank)
            found.append((value, at))
    return found


@settings(max_examples=150, deadline=None)
@given(some_nodes(), STEPS, asks())
def test_the_index_finds_what_the_policy_says(nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask) -> None:
    """Of all places on devices that pass all filters, the smallest by the steps in their order."""
    fleet = Fleet(nodes)
    fleet.retune({})
    fill(fleet, steps)

    passing = [unit for unit in fleet.units.values() if refusal_at(fleet, unit, wanted) is None]
    every = sorted((value, at) for unit in passing for value, at in values(fleet, unit, wanted))
    found = place(fleet, wanted)

    if not every:
        assert isinstance(found, NoFit)
        return
    assert isinstance(found, Placement)
    assert found.record.value == every[0][0]
    assert found.slice == slice_at(fleet, every[0][1])
    for rival in found.record.rivals:
        better = [value for value, _ in every[1:] if first_difference(every[0][0], value) == rival.step]
        assert rival.value == min(better)
    assert {r.step for r in found.record.rivals} <= {first_difference(every[0][0], value) for value, _ in every[1:]}


def first_difference(one: Value, other: Value) -> str:
    differing = [name for name, a, b in zip(Value._fields, one, other, strict=True) if a != b]
    return differing[0] if differing else "order"


@settings(max_examples=80, deadline=None)
@given(some_nodes(), STEPS, asks())
def test_counts_are_what_the_filters_say_one_by_one(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """Each device that is out is counted once, at the first filter that rules it out."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    reasons = (refusal_at(fleet, unit, wanted) for unit in fleet.units.values())
    expected = Counter(reason[0].name for reason in reasons if reason)
    record = place(fleet, wanted).record

    assert dict(record.refused) == dict(expected)
    assert record.considered == len(fleet.units)


@settings(max_examples=40, deadline=None)
@given(some_nodes(), STEPS)
def test_the_same_fleet_decides_alike_whoever_came_first(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """The order in which nodes were added changes nothing."""
    one, other = Fleet(nodes), Fleet(reversed(nodes))

    fill(one, steps)
    fill(other, steps)

    assert one.held == other.held
