"""Where a search looks, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer, Slice, in_memory
from pilotlight_placement.search.candidate import slice_of
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place
from pilotlight_placement.search.tiers import blocked_nodes, runs, tiers
from tests.placement.makers import W, ask, gpu, host, node


def visited(fleet: Fleet, wanted: Ask) -> list[list[str]]:
    """For each tier the nodes of its candidates, in their order."""
    return [
        [slice_of(fleet, candidate).node for run in runs(fleet, wanted, tier) for candidate in run]
        for tier in tiers(fleet, wanted, fleet.offers(wanted))
    ]


def three_nodes(*busy: str) -> Fleet:
    """Nodes a, b and c in the zones x, x and y; each name in `busy` is a container of f on that node."""
    zones = {"a": "x", "b": "x", "c": "y"}
    fleet = Fleet([node(n, *(gpu(f"{n}{i}", "T4") for i in range(4)), zone=zone) for n, zone in zones.items()])
    for number, name in enumerate(busy):
        slice_ = Slice(node=name, kind=SliceKind.GPU, type="T4", ids=(f"{name}{number}",), memory=15360)
        fleet.hold(PlacedContainer(container=f"f{number}", slice=slice_, function="f"))
    return fleet


def test_tiers_follow_the_counts_of_the_function() -> None:
    """Nodes without any first, then those with one, then those with two; the same for zones."""
    by_node = visited(three_nodes("a", "a", "b"), ask("T4", function="f", spread=Spread(over=Over.NODE)))
    by_zone = visited(three_nodes("a", "b", "c"), ask("T4", function="f", spread=Spread(over=Over.ZONE)))

    assert [set(tier) for tier in by_node] == [{"c"}, {"b"}, {"a"}]
    assert [set(tier) for tier in by_zone] == [{"c"}, {"a", "b"}]


@pytest.mark.parametrize(("over", "left"), [(Over.NODE, {"b", "c"}), (Over.ZONE, {"c"})])
def test_a_hard_limit_leaves_full_places_out(over: Over, left: set[str]) -> None:
    """One container a node, or a zone, is as many as may be."""
    tiers_left = visited(three_nodes("a"), ask("T4", function="f", spread=Spread(over=over, most=1)))

    assert {name for tier in tiers_left for name in tier} == left


def test_nodes_with_the_weights_come_first() -> None:
    """Each node in one run only."""
    there = frozenset({"w"})
    fleet = Fleet([
        node("cold", gpu("a", "T4")), node("disk", gpu("b", "T4"), resident=there),
        node("memory", gpu("c", "T4"), resident=there | {in_memory("w")}),
    ])  # fmt: skip

    assert visited(fleet, ask("T4", resident=(W,))) == [["memory", "disk", "cold"]]
    spread = visited(fleet, ask("T4", resident=(W,), function="f", spread=Spread(over=Over.NODE)))
    assert spread == [["memory", "disk", "cold"]]


def test_hosts_with_too_little_left_and_avoided_functions_block_nodes() -> None:
    """A host that does not say what it has is not blocked."""
    fleet = Fleet([node("small", host=host(8, 1)), node("large", host=host(1, 8)), node("silent")])
    busy = three_nodes("b")

    def blocked(**wishes: Any) -> set[str]:
        return {fleet.by_rank[rank].name for rank in blocked_nodes(fleet, ask(**wishes))}

    assert blocked(memory=2 * GIB) == {"small"}
    assert blocked(cpu=2000) == {"large"}
    assert blocked(memory=2 * GIB, cpu=2000) == {"small", "large"}
    assert blocked() == set()
    assert {busy.by_rank[rank].name for rank in blocked_nodes(busy, ask("T4", avoid=("f",)))} == {"b"}


def test_nodes_of_what_avoids_the_function_are_blocked_until_it_is_gone() -> None:
    """Its own wishes do not matter."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4")), node("m", gpu("c", "T4"))])
    shy = place(fleet, ask("T4", function="f", avoid=("g",)))
    assert isinstance(shy, Placement)
    fleet.hold(shy.held("shy"))

    def blocked(function: str) -> set[str]:
        return {fleet.by_rank[rank].name for rank in blocked_nodes(fleet, ask("T4", function=function))}

    assert (blocked("g"), blocked("f"), blocked("")) == ({shy.node}, set(), set())
    other = place(fleet, ask("T4", function="g"))
    assert isinstance(other, Placement)
    assert other.node != shy.node
    fleet.release("shy")
    assert blocked("g") == set()
