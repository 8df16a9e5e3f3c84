"""The fleet as a decision saw it."""

from __future__ import annotations

from hypothesis import given, settings

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.explain.past_fleet import fleet_at
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.history import Journal
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.place import place
from tests.placement.makers import CHURN, ask, asks, fill, gpu, node, some_nodes


@settings(max_examples=60, deadline=None)
@given(some_nodes(), CHURN, CHURN, asks())
def test_the_rebuilt_fleet_is_the_one_that_was(
    nodes: list[Node], before: list[tuple[Ask, int]], after: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """Holds, nodes and demand: so the same ask gets the same place there, whatever happened since."""
    fleet = Fleet(nodes)
    fill(fleet, before)
    decided, held = place(fleet, wanted), dict(fleet.held)
    for name in list(held):
        fleet.release(name)
    fill(fleet, after)
    fleet.remove(min(fleet.places))

    then = fleet_at(fleet, decided.record)

    assert then is not None
    assert then.held == held
    assert {name: place.node for name, place in then.places.items()} == {each.name: each for each in nodes}
    assert place(then, wanted).record.value == decided.record.value


def test_a_revision_that_the_journal_forgot_is_gone() -> None:
    """Nothing is guessed."""
    fleet = Fleet([node("n", gpu("g", "T4"))])
    record = place(fleet, ask("T4")).record
    fleet.drain("n")
    fleet.journal = Journal()

    assert fleet_at(fleet, record) is None
