"""The place that an offer has on one device."""

from __future__ import annotations

from hypothesis import given

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.candidate import candidate_on, empty_costs, has_room, slice_of
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN, ask, asks, fill, gpu, node, some_nodes


@examples(80, fewer=SLOW)
@given(some_nodes(), CHURN, asks())
def test_every_candidate_can_be_held(nodes: list[Node], steps: list[tuple[Ask, int]], wanted: Ask) -> None:
    """The slice that it is is free for the ask's tenant, and a device with a candidate has room."""
    fleet = Fleet(nodes)
    fill(fleet, steps)

    for unit in fleet.units.values():
        offers = fleet.offers_in(wanted, unit.group)
        found = [at for offer in offers if unit.is_offered and (at := candidate_on(offer, wanted, unit)) is not None]
        assert not found or has_room(unit, wanted, offers)
        for candidate in found:
            held = PlacedContainer(
                container="new", slice=slice_of(fleet, candidate), tenant=wanted.tenant, neighbours=wanted.neighbours
            )
            assert fleet.refusal(held) == ""


def test_several_whole_devices_are_of_one_link_where_one_has_enough() -> None:
    """Of two links with enough the smaller one, so that the larger stays whole."""
    links = {"a": "x", "b": "y", "c": "y", "d": "z", "e": "z", "f": "z"}
    fleet = Fleet([node("n", *(gpu(name, "T4", link=link) for name, link in links.items()))])
    unit, wanted = fleet.places["n"].units[0], ask("T4:2")
    (offer,) = fleet.offers_in(wanted, unit.group)

    found = candidate_on(offer, wanted, unit)

    assert found is not None
    assert slice_of(fleet, found).ids == ("b", "c")


def test_a_group_of_whole_devices_has_one_candidate_on_its_node() -> None:
    """On its first empty device; the others have room beside it, and none of it alone."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"))])
    wanted = ask("T4:2")
    first, second = fleet.places["n"].units
    offers = fleet.offers_in(wanted, first.group)

    assert candidate_on(offers[0], wanted, first) is not None
    assert candidate_on(offers[0], wanted, second) is None
    assert has_room(second, wanted, offers)


def test_nodes_with_the_fewest_empty_devices_go_first() -> None:
    """The keys of whole devices grow with what would stay empty."""
    fleet = Fleet([node("n", *(gpu(name, "T4") for name in "abcdefgh"))])
    place, wanted = fleet.places["n"], ask("T4:2")
    (offer,) = fleet.offers_in(wanted, place.units[0].group)
    keys = [empty_costs(offer, wanted)[vacant, place.room] for vacant in (2, 3, 5)]

    assert keys == sorted(keys)
    assert keys[0][1] == 0
