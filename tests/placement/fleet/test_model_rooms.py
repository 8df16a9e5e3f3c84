"""Which models are scarce, and how dear that makes them."""

from __future__ import annotations

from pilotlight_core.model.price_book import PriceBook
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.model_rooms import ModelRooms
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import SHARE_UNITS
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place
from tests.placement.makers import ask, gpu, node

DEVICES = [standard()["T4"], standard()["A10"]]
ANY = AskShape(mib=0, share=False)
T4_ONLY = AskShape(mib=0, share=False, types=("T4",))


def rooms(t4: int, a10: int, mix: dict[AskShape, float]) -> ModelRooms:
    made = ModelRooms()
    made.change("T4", t4 * SHARE_UNITS)
    made.change("A10", a10 * SHARE_UNITS)
    made.claim(DEVICES, mix)
    return made


def test_a_model_that_some_must_have_is_dearer_the_less_of_it_is_left() -> None:
    """Nothing while it is as loaded as the others."""
    mix = {ANY: 0.5, T4_ONLY: 0.5}

    assert rooms(8, 8, mix).premium("T4") == 0
    assert 0 < rooms(6, 8, mix).premium("T4") < rooms(2, 8, mix).premium("T4")
    assert rooms(2, 8, mix).premium("A10") == 0


def test_no_model_is_scarce_where_all_accept_any() -> None:
    """Whatever is left of each."""
    assert rooms(1, 100, {ANY: 1.0}).premium("T4") == 0


def test_premiums_follow_what_is_taken_and_given_back() -> None:
    """Back in an earlier state they are what they were."""
    made = rooms(4, 8, {ANY: 0.5, T4_ONLY: 0.5})
    before = made.premium("T4")

    made.change("T4", -2 * SHARE_UNITS)
    fewer = made.premium("T4")
    made.change("T4", 2 * SHARE_UNITS)

    assert fewer > before == made.premium("T4")


def test_who_takes_any_is_kept_off_the_scarce_model() -> None:
    """Of two models at one price an ask for either has the one that nobody must have."""
    fleet = Fleet([node("n1", gpu("a", "T4")), *(node(f"m{n}", gpu(f"b{n}", "A10")) for n in range(4))])
    fleet.retune({ANY: 0.5, T4_ONLY: 0.5})
    either = ask("T4", "A10", by_cost=True)
    fleet.prices = Prices(book=PriceBook(rates={"t4": 10**9, "a10": 10**9}))

    found = place(fleet, either)

    assert isinstance(found, Placement)
    assert found.slice.type == "A10"
    check_integrity(fleet)
