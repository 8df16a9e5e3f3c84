"""The indexed search against scoring every device by the policy's own lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.candidate import Candidate, candidate_on, slice_of
from pilotlight_placement.search.decision_record import NoFit, Placement, Value
from pilotlight_placement.search.filters import refusal_at
from pilotlight_placement.search.place import first_place, has_place, place
from pilotlight_placement.search.policy import STEPS, first_difference
from tests.example_counts import SLOW, examples
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


@examples(150, fewer=SLOW)
@given(some_nodes(), CHURN, asks(), st.lists(asks(), max_size=6))
def test_the_index_finds_what_the_policy_says(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask, demand: list[Ask]
) -> None:
    """Of all places on devices that pass all filters, the smallest by the steps in their order; whatever the demand."""
    fleet = Fleet(nodes)
    shapes = [shape for each in demand if (shape := AskShape.of(each)) is not None]
    fleet.retune({shape: 1 / len(shapes) for shape in shapes})
    fill(fleet, steps)

    every = every_candidate(fleet, wanted)
    found = place(fleet, wanted)

    assert has_place(fleet, wanted) is bool(every)
    if not every:
        assert isinstance(found, NoFit)
        assert first_place(fleet, wanted) is None
        return
    assert isinstance(found, Placement)
    assert found.record.value == every[0][0]
    assert found.slice == slice_of(fleet, every[0][1])
    bare = place(fleet, wanted, explain=False)
    assert isinstance(bare, Placement)
    assert first_place(fleet, wanted) == bare
    assert (bare.slice, bare.record.value) == (found.slice, found.record.value)
    for rival in found.record.rivals:
        better = [value for value, _ in every[1:] if first_difference(every[0][0], value) == rival.step]
        assert rival.value == min(better)
    assert {r.step for r in found.record.rivals} <= {first_difference(every[0][0], value) for value, _ in every[1:]}


@examples(40, fewer=SLOW)
@given(some_nodes(), CHURN)
def test_the_same_fleet_decides_alike_whoever_came_first(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """The order in which nodes were added changes nothing."""
    one, other = Fleet(nodes), Fleet(reversed(nodes))

    fill(one, steps)
    fill(other, steps)

    assert one.held == other.held


@examples(100)
@given(some_nodes(), CHURN)
def test_no_host_is_ever_promised_more_than_it_has(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """After each decision, by a sum over the containers; a refusal names memory or cores only if they are short."""
    fleet = Fleet(nodes)
    for number, (wanted, luck) in enumerate(steps):
        found = place(fleet, wanted)
        if isinstance(found, Placement):
            fleet.hold(found.held(f"c{number:03}"))
        else:
            for name, _ in found.record.refused:
                assert name not in ("memory", "cpu") or is_short(fleet, wanted, name)
        if luck == 0 and fleet.held:
            fleet.release(min(fleet.held))

        check_integrity(fleet)
        for node in nodes:
            memory, cores = promised(fleet, node.name)
            assert node.host is None or (memory <= node.host.memory and cores <= node.host.cpu_millis)


def promised(fleet: Fleet, node: str) -> tuple[int, int]:
    """Bytes and thousandths of a core that the containers of a node may use."""
    there = [held.host for held in fleet.held.values() if held.slice.node == node]
    return sum(share.memory for share in there), sum(share.cpu_millis for share in there)


def is_short(fleet: Fleet, wanted: Ask, name: str) -> bool:
    """Whether some host has too little of it left."""
    hosts = {place.name: host for place in fleet.places.values() if (host := place.node.host) is not None}
    if name == "memory":
        return any(host.memory - promised(fleet, node)[0] < wanted.memory for node, host in hosts.items())
    return any(host.cpu_millis - promised(fleet, node)[1] < wanted.cpu for node, host in hosts.items())
