"""What nodes lack of what an ask would have resident."""

from __future__ import annotations

from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.resident_ask import ResidentAsk
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, in_memory
from pilotlight_placement.search.residency import lack_on, lacked_by_most, nodes_with_some
from tests.example_counts import examples
from tests.placement.makers import V, W, ask, asks, chosen, gpu, node, some_nodes


@examples(40)
@given(some_nodes(), asks())
def test_nodes_come_by_what_they_lack(nodes: list[Node], wanted: Ask) -> None:
    """All that have some of it, and those that have none lack most."""
    fleet = Fleet(nodes)
    lack = lack_on(fleet, wanted)
    groups = nodes_with_some(fleet, wanted)
    lacks = [{lack(rank) for rank in ranks} for ranks in groups]
    assert all(len(alike) == 1 for alike in lacks)
    flat = [lack(rank) for ranks in groups for rank in ranks[:1]]
    assert flat == sorted(set(flat))
    some = {rank for ranks in groups for rank in ranks}
    ids = {each.id for each in wanted.resident}
    assert some == {rank for rank, place in fleet.by_rank.items() if place.node.resident & ids}
    assert {lack(rank) for rank in fleet.by_rank.keys() - some} <= {lacked_by_most(wanted)}
    assert all(each < lacked_by_most(wanted) for each in flat)


def test_the_bytes_decide_of_several_things() -> None:
    """Large weights on a disk go before small ones in memory, and both together before one."""
    large, small = frozenset({"w"}), frozenset({"v", in_memory("v")})
    nodes = [node("large", gpu("a", "T4"), resident=large), node("small", gpu("b", "T4"), resident=small)]
    wanted = ask("T4", resident=(V, W))
    assert chosen(Fleet(nodes), wanted).node == "large"
    both = node("both", gpu("c", "T4"), resident=frozenset({"v", "w"}))
    assert chosen(Fleet([*nodes, both]), wanted).node == "both"


def test_packages_count_beside_weights() -> None:
    """Of nodes with the same weights the one goes first that has built the environment too."""
    environment = ResidentAsk("env_1", 2**28, is_built=True)
    nodes = [
        node(name, gpu(name, "T4"), resident=frozenset({"w", *({"env_1"} if name == there else ())}))
        for there in ("a", "b") for name in ("a", "b")
    ]  # fmt: skip
    for there, pair in (("a", nodes[:2]), ("b", nodes[2:])):
        assert chosen(Fleet(pair), ask("T4", resident=(W, environment))).node == there
