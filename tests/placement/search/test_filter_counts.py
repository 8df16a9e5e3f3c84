"""Counts by filter against the filters themselves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.filters import refusal_at
from pilotlight_placement.search.place import place
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN, asks, fill, some_nodes


@examples(80, fewer=SLOW)
@given(some_nodes(), CHURN, asks())
def test_counts_are_what_the_filters_say_one_by_one(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """Each device that is out is counted once, at the first filter that rules it out."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    reasons = (refusal_at(fleet, unit, wanted) for unit in fleet.units.values())
    expected = Counter(reason[0].name for reason in reasons if reason)
    record = place(fleet, wanted).record

    assert dict(record.refused) == dict(expected)
    assert record.considered == len(fleet.units)
