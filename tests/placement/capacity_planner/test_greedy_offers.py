"""Purchases, and the functions that gain most from their slices."""

from __future__ import annotations

from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.capacity_planner.capacity_plan import FunctionDemand, FunctionNeed, PlanningTerms, demands_of
from pilotlight_placement.capacity_planner.greedy_offers import Gains, filled, offers_of

A100 = "A100-80GB"


def demands(**speeds: dict[str, float]) -> tuple[FunctionDemand, ...]:
    """`demands(f={"3g": 10})`: each function needs 70 per second, and was measured on these slices of an A100."""
    known = {
        name: Curves({(A100, key): (ThroughputPoint(batch=1, throughput=s, p95_ms=1),) for key, s in made.items()})
        for name, made in speeds.items()
    }
    return demands_of([FunctionNeed(function=name, rps=70) for name in known], known, PlanningTerms())


def test_a_device_is_offered_in_each_full_cut_and_whole_once_for_each_function() -> None:
    """A cut is full if no measured slice can be added to it."""
    offers = list(offers_of(demands(f={"3g": 10.0, "whole": 20.0}, g={"4g": 15.0})))

    assert sorted(offer.slices for offer in offers) == [("3g", "3g"), ("4g", "3g"), ("whole",)]
    assert all(offer.price == offer.choice.price for offer in offers)


def test_each_slice_goes_to_whom_it_is_worth_most_until_its_need_is_met() -> None:
    """The second slice of a cut sees what the first one has covered."""
    made = demands(f={"3g": 80.0}, g={"3g": 60.0})
    rest, worth = {"f": 100.0, "g": 100.0}, {"f": 1.0, "g": 1.0}
    (offer,) = offers_of(made)

    found = filled(offer, Gains([offer], rest, worth), rest, worth)

    assert found.owners == ("f", "g")
    assert found.value == (80 + 60) / offer.price


def test_what_misses_nothing_gains_nothing() -> None:
    """Its slices go to other functions, or to none."""
    made = demands(f={"3g": 80.0})
    (offer,) = offers_of(made)
    gains = Gains([offer], {"f": 100.0}, {"f": 1.0})

    gains.change("f", 0.0)

    assert gains.most(offer, "3g") == []
    assert filled(offer, gains, {"f": 0.0}, {"f": 1.0}).owners == ("", "")
