"""The policy's steps: each decides as its sentence says."""

from __future__ import annotations

from hypothesis import given

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.decision_record import Placement, Value
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import STEP_NAMES, best_on, first_difference
from tests.example_counts import examples
from tests.placement.makers import CHURN, W, ask, asks, chosen, fill, gpu, node, some_nodes


def test_a_value_has_a_term_for_each_step() -> None:
    """Whoever adds a step gives both."""
    assert Value._fields == STEP_NAMES
    assert len(set(STEP_NAMES)) == len(STEP_NAMES)


def test_the_first_difference_decides_and_the_last_step_where_there_is_none() -> None:
    """Later terms do not count."""
    one = Value(0, 0, 0, 1, 0.0, 0.0, 0, 0, 5)

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
