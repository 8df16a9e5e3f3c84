"""The policy's lists: each step decides as its sentence says, each filter refuses with a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Domain, Node, PlacedContainer, Slice
from pilotlight_placement.search.decision_record import Placement, Value
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import (
    FILTER_NAMES,
    RULED_OUT,
    STEP_NAMES,
    best_on,
    crowding,
    first_difference,
    refusal_at,
)
from tests.placement.makers import ABLE, CHURN, ask, asks, cpu, fill, gpu, node, some_nodes


def chosen(fleet: Fleet, wanted: Ask) -> Slice:
    found = place(fleet, wanted)
    assert isinstance(found, Placement)
    return found.slice


def test_a_value_has_a_term_for_each_step_and_each_filter_its_words() -> None:
    """Whoever adds a step or filter gives both."""
    assert Value._fields == STEP_NAMES
    assert tuple(RULED_OUT) == FILTER_NAMES
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
        [node("n", gpu("a", "H100-80GB"), gpu("b", "H100-80GB")), node("m", gpu("c", "T4"), weights=frozenset({"w"}))]
    )
    fleet.hold(PlacedContainer(container="x", slice=chosen(fleet, ask("H100")), function="f"))

    wanted = ask("H100", "T4", function="f", weights="w", spread=Spread(over=Over.NODE))

    assert chosen(fleet, wanted).type == "H100-80GB"


@pytest.mark.parametrize("over", list(Over))
def test_crowding_counts_the_functions_own_containers_where_it_spreads(over: Over) -> None:
    """On the node, or in the zone; without a spread it is nothing."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="z"), node("m", gpu("b", "T4"), zone="z")])
    whole = Slice(node="n", kind=chosen(fleet, ask("T4")).kind, type="T4", ids=("a",), memory=1)
    fleet.hold(PlacedContainer(container="x", slice=whole, function="f"))
    wanted = ask("T4", function="f", spread=Spread(over=over))

    counts = [crowding(fleet, wanted, fleet.places[name]) for name in ("n", "m")]

    assert counts == ([1, 0] if over is Over.NODE else [1, 1])
    assert crowding(fleet, ask("T4", function="f"), fleet.places["n"]) == 0


def test_an_idle_instance_goes_before_one_that_must_be_cut() -> None:
    """Of two devices that are equal in all else."""
    for there in ("n", "m"):
        instances = {there: (MigPlacement(start=6, profile="1g"),)}
        fleet = Fleet([node(name, gpu(name, mig=True, instances=instances.get(name, ()))) for name in ("n", "m")])

        assert chosen(fleet, ask("H100", gib=5)).node == there


def test_refusals_name_the_first_filter_and_why() -> None:
    """A draining node is out for that, whatever else it lacks."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="x", slots=(cpu(0),))])
    unit = fleet.places["n"].units[0]

    refused = refusal_at(fleet, unit, ask("H100", zones=("y",)))
    assert refused is not None
    assert (refused[0].name, refused[1]) == ("zone", "it is in the zone x, not in y")
    fleet.drain("n")
    refused = refusal_at(fleet, fleet.places["n"].units[0], ask("H100", zones=("y",)))
    assert refused is not None
    assert refused[0].name == "draining"


@settings(max_examples=60, deadline=None)
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


def test_what_a_node_cannot_do_is_said_of_it() -> None:
    """By its name, with what it has or allows."""
    able = Node(name="n", domain=Domain(abilities=ABLE), slots=(cpu(0),))
    fleet = Fleet([able])
    (unit,) = fleet.units.values()

    def why(**more: Any) -> str:
        refused = refusal_at(fleet, unit, ask(**more))
        return f"{refused[0].name}: {refused[1]}" if refused else ""

    assert why(base="torch", needs=("limits",), shm=ABLE.shm, scratch=ABLE.scratch, pids=ABLE.pids) == ""
    assert why(base="jax") == "base: n has the base environments default, torch, not jax"
    assert why(needs=("sandbox-limits",)) == (
        "feature: n cannot do sandbox-limits: its agent is older, or its sandbox holds no such limits"
    )
    assert why(needs=("wings", "limits")) == "feature: the agent of n is older and cannot do wings"
    assert why(shm=ABLE.shm + 1) == "shm: n allows 8192 MiB of /dev/shm at most"
    assert why(scratch=ABLE.scratch + 1) == "scratch: n allows 8192 MiB of /tmp at most"
    assert why(pids=5000) == "pids: n allows 4096 processes and threads at most"
