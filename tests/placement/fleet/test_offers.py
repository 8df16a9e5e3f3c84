"""Which groups of devices would serve an ask, and as what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given

from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.price_book import DatedRate, PriceBook
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import NoOption, Prices, options, slot_options
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers, refused_domain
from pilotlight_placement.hardware.node import Domain, Node, Slot
from tests.example_counts import examples
from tests.placement.makers import ABLE, ask, asks, gpu, node, some_nodes


@examples(100)
@given(some_nodes(), asks())
def test_each_group_has_offers_or_the_filter_that_leaves_none(nodes: list[Node], wanted: Ask) -> None:
    """By its domain, or by what its devices could serve as; the cheapest offer stands first."""
    fleet = Fleet(nodes)
    offers = fleet.offers(wanted)

    for group in fleet.groups.values():
        part, kind = group.part, group.kind
        if name := refused_domain(wanted, group.domain):
            assert offers.why[group] == NoOption(filter=name)
            continue
        if isinstance(part, Slot):
            made = slot_options(wanted, part)
        else:
            made = options(wanted, part, mig=kind.mig, shareable=kind.shareable)
        if isinstance(made, NoOption):
            assert offers.why[group] == made
            assert group not in offers.by_group
        else:
            assert sorted(map(str, made)) == sorted(str(offer.option) for offer in offers.by_group[group])
    for choice in offers.choices:
        assert all([o.level for o in made] == sorted(o.level for o in made) for made in choice.by_group.values())
        assert [level for level, _ in choice.levels] == sorted({level for level, _ in choice.levels})


def test_what_a_switch_of_mode_would_give_is_known_where_none_needs_a_reset() -> None:
    """A Hopper that is given whole would have instances, an Ampere keeps its mode."""
    fleet = Fleet([node("n", gpu("a", "H100-80GB"), gpu("b", "A100-80GB"), gpu("c", "H100-80GB", mig=True))])
    offers = fleet.offers(ask("ANY", gib=8))
    switched = {group: offers.switched(group) for group in offers.groups()}

    by_kind = {(group.kind.name, group.kind.mig): bool(made) for group, made in switched.items()}
    assert by_kind == {("H100-80GB", False): True, ("H100-80GB", True): True, ("A100-80GB", False): False}
    assert all(option.profile >= 0 for group, made in switched.items() if not group.kind.mig for option in made)
    elsewhere = fleet.offers(replace(ask("ANY", gib=8), zones=("elsewhere",)))
    assert not any(elsewhere.switched(group) for group in elsewhere.groups())


def test_a_domain_is_refused_by_region_then_zone_then_purchase() -> None:
    """The first filter counts; nothing asked for refuses nothing."""
    domain = Domain(region="eu", zone="a", spot=True)

    assert refused_domain(ask("T4"), domain) == ""
    assert refused_domain(ask("T4", regions=("us",), zones=("b",)), domain) == "region"
    assert refused_domain(ask("T4", regions=("eu",), zones=("b",)), domain) == "zone"
    assert refused_domain(ask("T4", purchase=Purchase.ON_DEMAND), domain) == "purchase"


def test_a_domain_is_refused_by_what_its_agents_cannot_do() -> None:
    """After its location; the base environment, then the features, then each ceiling."""
    domain = Domain(zone="a", abilities=ABLE)

    def refused(**more: Any) -> str:
        return refused_domain(ask("T4", **more), domain)

    assert refused(base="torch", needs=("limits",), shm=ABLE.shm, scratch=ABLE.scratch, pids=ABLE.pids) == ""
    assert refused(base="jax", zones=("b",)) == "zone"
    assert refused(base="jax", needs=("wings",)) == "base"
    assert refused(needs=("limits", "wings"), shm=ABLE.shm + 1) == "feature"
    assert refused(shm=ABLE.shm + 1, scratch=ABLE.scratch + 1) == "shm"
    assert refused(scratch=ABLE.scratch + 1, pids=ABLE.pids + 1) == "scratch"
    assert refused(pids=ABLE.pids + 1) == "pids"
    assert refused_domain(ask("T4", base="jax"), Domain()) == "base"


def test_offers_are_made_once_until_a_new_group_comes() -> None:
    """The same object as long as no other kind of device is there."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    before = fleet.offers(ask("ANY"))

    assert fleet.offers(ask("ANY")) is before
    fleet.put(node("m", gpu("b", "T4")))
    assert fleet.offers(ask("ANY")) is before
    fleet.put(node("o", gpu("c", "A10")))
    assert len(fleet.offers(ask("ANY")).by_group) == 2


def test_a_price_that_changes_changes_the_offers() -> None:
    """From its date on the device that has become the cheaper one stands first."""
    book = PriceBook(rates={"h100": 4 * 10**9, "a100": 2 * 10**9})
    fleet = Fleet([node("n", gpu("a", "H100-80GB"), gpu("b", "A100-80GB"))], prices=Prices(book=book))
    wanted = ask("ANY", gib=60)
    before = fleet.offers(wanted)
    assert fleet.offers(wanted) is before

    book.put("h100", [DatedRate(starts_at=100.0, nano_usd_per_hour=10**9)])
    book.refresh(99.0)
    assert fleet.offers(wanted) is before
    book.refresh(100.0)

    assert [first_of(offers) for offers in (before, fleet.offers(wanted))] == ["A100-80GB", "H100-80GB"]


def first_of(offers: Offers) -> str:
    """The kind of device with the best offer."""
    best = min((offer.level, group.kind.name) for group, made in offers.by_group.items() for offer in made)
    return best[1]
