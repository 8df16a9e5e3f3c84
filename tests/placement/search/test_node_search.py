"""The best places on certain nodes."""

from __future__ import annotations

from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.candidate import candidate_on
from pilotlight_placement.search.node_search import SearchScope, on_nodes
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN, ask, asks, fill, gpu, node, some_nodes


@examples(80, fewer=SLOW)
@given(some_nodes(), CHURN, asks())
def test_the_first_is_the_smallest_candidate_of_the_nodes(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """As if every device were looked at; and each run has one cost."""
    fleet = Fleet(nodes)
    fill(fleet, steps)
    for choice in fleet.offers(wanted).choices:
        every = sorted(
            candidate
            for unit in fleet.units.values()
            if unit.is_offered
            for offer in choice.by_group.get(unit.group, ())
            if (candidate := candidate_on(offer, wanted, unit)) is not None
        )
        runs = [list(run) for run in on_nodes(choice.by_group, wanted, fleet.places.values(), SearchScope(None, ()))]

        assert [run[0] for run in runs[:1]] == every[:1]
        assert all(len({candidate.level for candidate in run}) == 1 for run in runs)
        assert {run[0].level for run in runs} == set(sorted({candidate.level for candidate in every})[:2])


def test_blocked_nodes_and_other_zones_are_passed_over() -> None:
    """A scope excludes them."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="x"), node("m", gpu("b", "T4"), zone="y")])
    (choice,) = fleet.offers(ask("T4")).choices

    def where(scope: SearchScope) -> list[str]:
        runs = on_nodes(choice.by_group, ask("T4"), fleet.places.values(), scope)
        return sorted(fleet.units[candidate.rank].node.name for run in runs for candidate in run)

    assert where(SearchScope(None, ())) == ["m", "n"]
    assert where(SearchScope(None, {fleet.places["n"].rank})) == ["m"]
    assert where(SearchScope(frozenset({("local", "x")}), ())) == ["n"]
