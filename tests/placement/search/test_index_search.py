"""The index against a look at each device."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.candidate import candidate_on
from pilotlight_placement.search.index_search import by_index
from pilotlight_placement.search.node_search import SearchScope
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN, asks, fill, some_nodes


@examples(100, fewer=SLOW)
@given(some_nodes(), CHURN, asks(), st.booleans())
def test_each_run_is_sorted_and_begins_with_its_levels_best(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask, blocks: bool
) -> None:
    """Of all devices in scope, none has a better candidate at that cost; blocked nodes have none."""
    fleet = Fleet(nodes)
    fill(fleet, steps)
    blocked = {min(fleet.by_rank)} if blocks else set()
    for choice in fleet.offers(wanted).choices:
        best: dict[tuple[int, int], object] = {}
        every = sorted(
            candidate
            for unit in fleet.units.values()
            if unit.is_offered and unit.node.rank not in blocked
            for offer in choice.by_group.get(unit.group, ())
            if (candidate := candidate_on(offer, wanted, unit)) is not None
        )
        for candidate in every:
            best.setdefault((candidate.level, candidate.parked), candidate)
        runs = [list(run) for run in by_index(choice.levels, wanted, fleet.by_rank, SearchScope(None, blocked))]

        assert all(run == sorted(run) for run in runs)
        assert {(run[0].level, run[0].parked): run[0] for run in runs if run} == best
        assert {candidate for run in runs for candidate in run} <= set(every)
