"""The index of what hosts have to promise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.asks.ask import GIB
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.host_index import HostIndex, RankedAmounts
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place
from tests.placement.makers import ask, cpu, host, node

STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 9) | st.none()))


@given(STEPS, st.integers(-4, 10))
def test_amounts_are_found_by_what_they_are_below(steps: list[tuple[int, int | None]], bound: int) -> None:
    """As looking at each of them would."""
    amounts, known = RankedAmounts(), dict[int, int]()
    for rank, amount in steps:
        if amount is None:
            amounts.drop(rank)
            known.pop(rank, None)
        else:
            amounts.put(rank, amount)
            known[rank] = amount

    assert amounts.contents() == known
    assert amounts.below(bound) == {rank for rank, amount in known.items() if amount < bound}


def test_a_host_that_does_not_say_what_it_has_is_in_no_list() -> None:
    """Also when it said so before."""
    index = HostIndex()
    index.put(1, host(4, 8), host(3, 2))
    assert index.free_memory.below(3 * GIB) == {1}

    index.put(1, None, None)

    assert 1 not in index.memory
    assert index.free_memory.below(3 * GIB) == set()


def test_what_is_promised_is_not_there_for_others_until_it_is_given_back() -> None:
    """Of a container's whole life, and undone with a trial."""
    fleet = Fleet([node("n", slots=(cpu(0), cpu(1)), host=host(4, 24))])
    large = ask(memory=20 * GIB, cpu=1000)
    found = place(fleet, large)
    assert isinstance(found, Placement)

    with fleet.trial():
        fleet.hold(found.held("trial"))
        assert not isinstance(place(fleet, large), Placement)
    fleet.hold(found.held("a"))

    rank = fleet.places["n"].rank
    assert (fleet.hosts.free_memory[rank], fleet.hosts.free_cpu[rank]) == (4 * GIB, 3000)
    fleet.release("a")
    assert isinstance(place(fleet, large), Placement)
