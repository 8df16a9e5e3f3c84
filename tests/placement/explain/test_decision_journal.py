"""The memory of decisions."""

from __future__ import annotations

from pilotlight_placement.explain.decision_journal import PER_FUNCTION, DecisionLog, PlacementDecision
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.search.place import place
from tests.placement.makers import ask, gpu, node


def test_decisions_are_found_by_container_and_by_function() -> None:
    """With whose version it was and when; refusals by function only."""
    fleet, decisions = Fleet([node("n", gpu("g", "T4"))]), DecisionLog()
    placed, refused = place(fleet, ask("T4", function="f")), place(fleet, ask("H100", function="f"))

    decisions.add(placed, "c1", version="a.f@v1", at=1.0)
    decisions.add(refused, version="a.f@v2", at=2.0)

    first = PlacementDecision(outcome=placed, container="c1", version="a.f@v1", at=1.0, since=1.0)
    assert decisions.of_container("c1") == first
    assert decisions.of_container("c2") is None
    assert decisions.of_function("f") == [
        first,
        PlacementDecision(outcome=refused, version="a.f@v2", at=2.0, since=2.0),
    ]
    assert decisions.latest() == decisions.of_function("f")[-1]


def test_a_refusal_that_is_repeated_counts_once_for_each_version() -> None:
    """With its first and its last time, whatever is refused between; after a place it is another one."""
    fleet, decisions = Fleet([node("n", gpu("g", "T4"))]), DecisionLog()
    refused = place(fleet, ask("H100", function="f"))
    for at in range(1, 5):
        decisions.add(refused, version="a.f@v1", at=float(at))
        decisions.add(refused, version="a.f@v2", at=at + 0.5)

    assert [(each.version, each.since, each.at) for each in decisions.of_function("f")] == [
        ("a.f@v1", 1.0, 4.0),
        ("a.f@v2", 1.5, 4.5),
    ]
    decisions.add(place(fleet, ask("T4", function="f")), "c1", version="a.f@v1", at=5.0)
    decisions.add(refused, version="a.f@v1", at=6.0)
    assert [(each.version, each.since) for each in decisions.of_function("f")][-1] == ("a.f@v1", 6.0)


def test_trials_do_not_hide_where_calls_run() -> None:
    """As many are remembered of either."""
    fleet, decisions = Fleet([node("n", gpu("g", "T4"))]), DecisionLog()
    decisions.add(place(fleet, ask("T4", function="f")), "c0")
    for number in range(10):
        decisions.add(place(fleet, ask("T4", function="f", slice="T4/whole")), f"trial{number}")

    assert [each.container for each in decisions.of_function("f")] == ["c0", "trial7", "trial8", "trial9"]


def test_they_stay_bounded() -> None:
    """The oldest are forgotten."""
    fleet, decisions = Fleet([node("n", gpu("g", "T4"))]), DecisionLog(most=10)
    for number in range(100):
        decisions.add(place(fleet, ask("T4", function=f"f{number % 20}")), f"c{number}")

    assert decisions.of_container("c89") is None
    assert decisions.of_container("c99") is not None
    assert decisions.of_function("f5") == []
    assert len(decisions.of_function("f19")) <= PER_FUNCTION
