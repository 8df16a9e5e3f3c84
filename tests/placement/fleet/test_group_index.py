"""The index of a group against what its units make it."""

from __future__ import annotations

import pytest
from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet import group_index
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.group_index import actual_index, expected_index
from pilotlight_placement.fragmentation.host_fragmentation import host_room
from pilotlight_placement.hardware.node import Node
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN, ask, cpu, fill, gpu, host, node, some_nodes


@examples(80, fewer=SLOW)
@given(some_nodes(), CHURN)
def test_taking_out_and_putting_back_changes_nothing(nodes: list[Node], steps: list[tuple[Ask, int]]) -> None:
    """And what is out is nowhere in the index."""
    fleet = Fleet(nodes)
    fill(fleet, steps)
    for group in fleet.groups.values():
        inside = [unit for unit in fleet.units.values() if unit.group is group and unit.is_offered]
        before, open_before = expected_index(group, inside), list(group.open)
        assert actual_index(group) == before
        for unit in inside:
            group_index.remove(unit)
            assert actual_index(group) == expected_index(group, [other for other in inside if other is not unit])
            group_index.add(unit)
        assert actual_index(group) == before
        assert group.open == open_before


def test_a_unit_that_is_not_in_the_index_cannot_be_taken_out() -> None:
    """Twice out would be a defect, and is one at once."""
    unit = Fleet([node("n", gpu("g", mig=True))]).places["n"].units[0]
    group_index.remove(unit)

    with pytest.raises(LookupError):
        group_index.remove(unit)


def test_what_a_host_has_left_moves_its_units_to_other_states() -> None:
    """Empty and begun devices alike, and slots as one; what is out of the index stays out."""
    hosted = node("n", *(gpu(name, "T4", shareable=True) for name in "abc"), slots=(cpu(0), cpu(1)), host=host(8, 64))
    fleet = Fleet([hosted])
    for number in range(2):
        found = place(fleet, ask("T4", gib=6, tenant="t", cpu=1000))
        assert isinstance(found, Placement)
        fleet.hold(found.held(f"c{number}"))
    there = fleet.places["n"]
    devices, slots = there.units[0].group, there.units[-1].group

    assert there.room == host_room(2.2, host(6, 64), "T4")
    assert list(devices.vacant) == [(2, there.room)]
    assert [room for states in devices.shared.values() for _, room in states] == [there.room]
    assert list(slots.vacant) == [(1, there.room)]
    assert slots.empties == {there.rank: 2}
