"""The policy's steps: each decides as its sentence says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import BlankPlace, Node, ParkedPlace, PlacedContainer
from pilotlight_placement.search.decision_record import Placement, Value
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import STEP_NAMES, best_on, first_difference
from tests.example_counts import examples
from tests.placement.makers import CHURN, W, ask, asks, chosen, cpu, fill, gpu, node, some_nodes


def test_a_value_has_a_term_for_each_step() -> None:
    """Whoever adds a step gives both."""
    assert Value._fields == STEP_NAMES
    assert len(set(STEP_NAMES)) == len(STEP_NAMES)


def test_the_first_difference_decides_and_the_last_step_where_there_is_none() -> None:
    """Later terms do not count."""
    one = Value(0, 0, 0, 1, 0, 0.0, 0.0, 0, 0, 1, 5)

    assert first_difference(one, one._replace(cost=2, fit=0.5)) == "cost"
    assert first_difference(one, one._replace(fit=0.5, order=1)) == "fit"
    assert first_difference(one, one) == STEP_NAMES[-1]


def test_preference_goes_before_all_else() -> None:
    """A type that stands first is chosen where its node is crowded, cold and dear."""
    fleet = Fleet(
        [node("n", gpu("a", "H100-80GB"), gpu("b", "H100-80GB")), node("m", gpu("c", "T4"), resident=frozenset({"w"}))]
    )
    fleet.hold(PlacedContainer(container="x", slice=chosen(fleet, ask("H100")), function="f"))

    wanted = ask("H100", "T4", function="f", resident=(W,), spread=Spread(over=Over.NODE))

    assert chosen(fleet, wanted).type == "H100-80GB"


def test_an_idle_instance_goes_before_one_that_must_be_cut() -> None:
    """Of two devices that are equal in all else."""
    for there in ("n", "m"):
        instances = {there: (MigPlacement(start=6, profile="1g"),)}
        fleet = Fleet([node(name, gpu(name, mig=True, instances=instances.get(name, ()))) for name in ("n", "m")])

        assert chosen(fleet, ask("H100", gib=5)).node == there


def test_a_slice_with_a_blank_goes_before_one_without() -> None:
    """Of its base environment, all else equal: on whole GPUs, on MIG instances, and on CPU slots."""
    there = (MigPlacement(start=6, profile="1g"),)
    wholes = {each: node(each, gpu(each, "T4")) for each in ("n", "m")}
    parts = {each: node(each, gpu(each, mig=True, instances=there)) for each in ("n", "m")}
    slots = {each: node(each, slots=(cpu(0),)) for each in ("n", "m")}
    for nodes, wanted in ((wholes, ask("T4")), (parts, ask("H100", gib=5)), (slots, ask())):
        for name in ("n", "m"):
            at = BlankPlace("" if nodes is slots else name, "default", *(("1g", 6) if nodes is parts else ()))

            def with_blank(base: str, nodes: dict[str, Node] = nodes, name: str = name, at: BlankPlace = at) -> Fleet:
                warm = replace(nodes[name], blanks=frozenset({at._replace(base=base)}))
                return Fleet([warm, *(each for each in nodes.values() if each.name != name)])

            assert chosen(with_blank("default"), wanted).node == name
            assert chosen(with_blank("torch"), wanted) == chosen(Fleet(nodes.values()), wanted)


def test_the_device_of_a_node_is_the_one_with_the_blank() -> None:
    """Until that is taken."""
    parts = tuple(gpu(name, "T4") for name in "abc")
    fleet = Fleet([node("n", *parts, blanks=frozenset({BlankPlace("b", "default")}))])
    first = chosen(fleet, ask("T4"))
    fleet.hold(PlacedContainer(container="x", slice=first))
    assert (first.ids, chosen(fleet, ask("T4")).ids) == (("b",), ("a",))
    check_integrity(fleet)


@pytest.mark.parametrize(("tenant", "expected"), [("t", "a"), ("u", "b")])
def test_what_another_tenant_has_parked_is_left_alone(tenant: str, expected: str) -> None:
    """Its own may be beside it. If there is no other place, it has to end."""
    parts = (gpu("a", "T4"), gpu("b", "T4"))
    fleet = Fleet([node("n", *parts, parked=(ParkedPlace("p", "t", "a"),))])
    assert chosen(fleet, ask("T4", tenant=tenant)).ids == (expected,)
    assert chosen(Fleet([node("n", parts[0], parked=(ParkedPlace("p", "t", "a"),))]), ask("T4", tenant=tenant))


def test_a_cut_leaves_the_instances_of_what_is_parked_alone() -> None:
    """Also where another start strands less; its own instance is used by its tenant as it is."""
    parked = (ParkedPlace("p", "t", "g", "3g", 4),)
    there = (MigPlacement(start=4, profile="3g"),)
    fleet = Fleet([node("n", gpu("g", mig=True, instances=there), parked=parked)])
    assert chosen(Fleet([node("n", gpu("g", mig=True))]), ask("H100", gib=5)).start == 6
    assert chosen(fleet, ask("H100", gib=5, tenant="t")).start < 4
    assert chosen(fleet, ask("H100", gib=30, tenant="t", slice="H100-80GB/3g")).start == 4
    assert chosen(fleet, ask("H100", gib=30, tenant="u", slice="H100-80GB/3g")).start == 0


@examples(60)
@given(some_nodes(), CHURN, asks())
def test_the_best_of_the_winners_node_is_the_winner(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """`best_on` agrees with the search on the winner's node."""
    fleet = Fleet(nodes)
    fill(fleet, steps)
    found = place(fleet, wanted)

    if isinstance(found, Placement):
        best = best_on(fleet, wanted, fleet.places[found.node])
        assert best is not None
        assert best[0] == found.record.value
