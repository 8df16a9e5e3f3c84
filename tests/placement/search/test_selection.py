"""The winner and the best loser of each step."""

from __future__ import annotations

from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.search.candidate import slice_of
from pilotlight_placement.search.policy import STEP_NAMES
from pilotlight_placement.search.selection import (
    CANDIDATE_STEPS,
    RUN_STEPS,
    TIER_STEPS,
    choose_candidate,
    first_candidate,
)
from tests.placement.makers import W, ask, gpu, node


def nodes_of(fleet: Fleet, wanted: Ask) -> tuple[str, dict[str, str]]:
    """The winner's node, and for each step the node of its best loser."""
    winner, rivals = choose_candidate(fleet, wanted, fleet.offers(wanted))
    assert winner is not None
    assert first_candidate(fleet, wanted, fleet.offers(wanted)) == winner
    names = {step: slice_of(fleet, rival.candidate).node for step, rival in rivals.items()}
    return slice_of(fleet, winner.candidate).node, names


def test_the_search_decides_in_the_policys_order() -> None:
    """Tiers, runs and candidates decide all steps, in their order."""
    assert (*TIER_STEPS, *RUN_STEPS, *CANDIDATE_STEPS) == STEP_NAMES


def test_each_step_that_decides_has_its_best_loser() -> None:
    """A node without the weights loses at residency, another type at preference."""
    fleet = Fleet([
        node("warm", gpu("a", "T4"), resident=frozenset({"w"})),
        node("cold", gpu("b", "T4")),
        node("other", gpu("c", "A10"), resident=frozenset({"w"})),
    ])  # fmt: skip

    assert nodes_of(fleet, ask("T4", "A10", resident=(W,))) == ("warm", {"resident": "cold", "preference": "other"})


def test_of_a_tier_without_a_place_nothing_is_the_loser_and_the_next_one_is_tried() -> None:
    """The node with the fewest of the function is full, so the next fewest wins."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4")), node("m", gpu("c", "T4"))])
    spread = Spread(over=Over.NODE)
    for name in ("one", "two"):
        wanted = ask("T4", function="f", spread=spread)
        winner, _ = choose_candidate(fleet, wanted, fleet.offers(wanted))
        assert winner is not None
        fleet.hold(PlacedContainer(container=name, slice=slice_of(fleet, winner.candidate), function="f"))

    assert nodes_of(fleet, ask("T4", function="f", spread=spread)) == ("n", {})


def test_nothing_is_chosen_where_nothing_is_free() -> None:
    """No winner and no rivals."""
    fleet = Fleet([node("n", gpu("a", "A10"))])

    assert choose_candidate(fleet, ask("T4"), fleet.offers(ask("T4"))) == (None, {})
