"""The memory of decisions."""

from __future__ import annotations

from pilotlight_placement.decisions import PER_FUNCTION, Decisions
from pilotlight_placement.fleet import Fleet
from pilotlight_placement.place import place
from tests.placement.makers import ask, gpu, node


def test_decisions_are_found_by_container_and_by_function() -> None:
    """Refusals by function only."""
    fleet, decisions = Fleet([node("n", gpu("g", "T4"))]), Decisions()
    placed, refused = place(fleet, ask("T4", function="f")), place(fleet, ask("H100", function="f"))

    decisions.add(placed, "c1")
    decisions.add(refused)

    assert decisions.of_container("c1") is placed
    assert decisions.of_container("c2") is None
    assert decisions.of_function("f") == [("c1", placed), ("", refused)]


def test_they_stay_bounded() -> None:
    """The oldest are forgotten."""
    fleet, decisions = Fleet([node("n", gpu("g", "T4"))]), Decisions(most=10)
    for number in range(100):
        decisions.add(place(fleet, ask("T4", function=f"f{number % 20}")), f"c{number}")

    assert decisions.of_container("c89") is None
    assert decisions.of_container("c99") is not None
    assert decisions.of_function("f5") == []
    assert len(decisions.of_function("f19")) <= PER_FUNCTION
