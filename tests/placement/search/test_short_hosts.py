"""Hosts that have too little, ever or now."""

from __future__ import annotations

from pilotlight_placement.asks.ask import GIB
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place
from pilotlight_placement.search.short_hosts import can_hold, cpu_refusal, memory_refusal, short_ever, short_now
from tests.placement.makers import ask, cpu, host, node

LARGE = ask(memory=20 * GIB, cpu=1000, function="f")


def one_node(slots: int = 4, cores: float = 4) -> Fleet:
    return Fleet([node("n", slots=tuple(cpu(number) for number in range(slots)), host=host(cores, 24))])


def test_ten_functions_of_20_gib_do_not_fit_a_node_of_24() -> None:
    """The second is told what keeps it out, and that it is not for ever."""
    fleet = one_node(slots=10)
    first = place(fleet, LARGE)
    assert isinstance(first, Placement)
    fleet.hold(first.held("a"))

    second = place(fleet, LARGE)

    assert isinstance(second, NoFit)
    assert not second.never
    assert dict(second.record.refused) == {"memory": 10}
    assert second.reason == (
        "of 10 devices and slots that could hold a CPU slot and 1 cores and 20.0 GiB of host memory, "
        "10 are on hosts whose memory is promised to other containers"
    )
    rank = fleet.places["n"].rank
    assert memory_refusal(fleet, rank, LARGE) == (
        "of the host's 24.0 GiB of memory for containers 4.0 GiB are left, 20.0 GiB are needed"
    )


def test_cores_are_counted_alike() -> None:
    """Four of one core each fill four cores."""
    fleet = one_node(slots=8)
    for number in range(4):
        found = place(fleet, ask(cpu=1000, memory=GIB))
        assert isinstance(found, Placement)
        fleet.hold(found.held(f"c{number}"))

    refused = place(fleet, ask(cpu=1000, memory=GIB))

    assert isinstance(refused, NoFit)
    assert dict(refused.record.refused) == {"cpu": 8}
    assert refused.reason.endswith("8 are on hosts whose cores are promised to other containers")
    assert cpu_refusal(fleet, fleet.places["n"].rank, ask(cpu=1000)) == (
        "of the host's 4 cores for containers 0 are left, 1 are needed"
    )


def test_what_no_host_has_is_said_to_be_for_ever() -> None:
    """256 cores of 4, and 40 GiB of 24."""
    fleet = one_node()

    cores, memory = place(fleet, ask(cpu=256_000)), place(fleet, ask(memory=40 * GIB))

    assert isinstance(cores, NoFit)
    assert isinstance(memory, NoFit)
    assert (cores.never, memory.never) == (True, True)
    assert cores.reason.endswith("no node with such a device or slot has more than 4 cores for containers (cpu=)")
    assert memory.reason.endswith(
        "no node with such a device or slot has more than 24.0 GiB of host memory for containers (memory=)"
    )
    assert short_ever(fleet, ask(cpu=256_000)).cpu == {fleet.places["n"].rank}
    assert memory_refusal(fleet, fleet.places["n"].rank, ask(memory=40 * GIB)).startswith("the host has 24.0 GiB")
    assert cpu_refusal(fleet, fleet.places["n"].rank, ask(cpu=256_000)).startswith("the host has 4 cores")


def test_memory_and_cores_that_are_on_no_node_together_are_named_so() -> None:
    """Each of them is somewhere."""
    fleet = Fleet([node("a", slots=(cpu(0),), host=host(2, 64)), node("b", slots=(cpu(0),), host=host(16, 4))])

    refused = place(fleet, ask(cpu=8000, memory=32 * GIB))

    assert isinstance(refused, NoFit)
    assert refused.never
    assert refused.reason.endswith(
        "no node with such a device or slot has as much host memory and as many cores together"
    )


def test_a_host_that_does_not_say_what_it_has_is_bounded_by_nothing() -> None:
    """Nor is an ask that needs nothing of it short anywhere."""
    fleet = Fleet([node("n", slots=(cpu(0),))])

    assert short_now(fleet, LARGE).either == set()
    assert can_hold(fleet.places["n"].node, LARGE)
    assert short_now(one_node(cores=0), ask()).either == set()
