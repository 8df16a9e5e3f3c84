"""How many devices have room, by the index and one by one."""

from __future__ import annotations

from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.candidate import has_room
from pilotlight_placement.search.open_units import joinable_shares, open_units
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN, asks, fill, some_nodes


@examples(100, fewer=SLOW)
@given(some_nodes(), CHURN, asks())
def test_the_index_counts_the_devices_that_have_room(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """A group's first offer is open wherever another one is, so its count is that of any of them."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    for group, offers in fleet.offers(wanted).by_group.items():
        inside = [unit for unit in fleet.units.values() if unit.group is group and unit.is_offered]
        with_room = sum(has_room(unit, wanted, offers) for unit in inside)
        assert wanted.media or open_units(offers[0].option, (group,), wanted) == with_room


@examples(60, fewer=SLOW)
@given(some_nodes(), CHURN, asks())
def test_a_tenant_joins_exactly_the_shares_that_take_it(
    nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """Its own, and those whose users all agree, if it agrees too; each device once."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    for group in fleet.groups.values():
        ranks = [rank for pool in joinable_shares(group, wanted) for ranks in pool.values() for rank in ranks]
        shared = [unit for unit in fleet.units.values() if unit.group is group and unit.held and unit.is_offered]
        takes = {
            unit.rank
            for unit in shared
            if unit.free > 0 and not group.kind.mig and group.slot is None
            if unit.takes(wanted.tenant, neighbours=wanted.neighbours)
        }
        assert len(ranks) == len(set(ranks))
        assert set(ranks) == takes
