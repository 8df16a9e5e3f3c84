"""Which slices would do, and at what cost."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves, ThroughputPoint, whole
from pilotlight_placement.asks.options import NoOption, Option, Prices, options, slot_options
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import Domain, Slot
from tests.placement.makers import ask

H100 = standard()["H100-80GB"]
H200 = standard()["H200"]


def keys(wanted: Ask, *, mig: bool = True, shareable: bool = False) -> list[str]:
    made = options(wanted, H100, mig=mig, shareable=shareable)
    assert isinstance(made, list)
    return [H100.cuts[o.profile].profile.key if o.profile >= 0 else f"{o.kind}:{o.count}:{o.units}" for o in made]


def refused(wanted: Ask, *, mig: bool = True) -> str:
    made = options(wanted, H100, mig=mig, shareable=False)
    assert isinstance(made, NoOption)
    return made.filter


@pytest.mark.parametrize(
    ("gib", "expected"),
    [
        (5, ["1g", "1g.2x", "2g", "3g", "4g", "7g"]),
        (15, ["1g.2x", "2g", "3g", "4g", "7g"]),
        (30, ["3g", "4g", "7g"]),
        (60, ["7g"]),
        (0, ["7g"]),
    ],
)
def test_memory_decides_which_instances_hold_it(gib: int, expected: list[str]) -> None:
    """By usable memory, not by name; an undeclared need takes the whole device."""
    assert keys(ask("H100", gib=gib)) == expected


def test_the_name_of_a_profile_promises_more_than_it_has() -> None:
    """An H200's 1g.18gb has 16.0 GiB."""
    made = options(ask("H200", gib=17), H200, mig=True, shareable=False)

    assert isinstance(made, list)
    assert H200.cuts[made[0].profile].name == "1g.35gb"


def test_isolation_decides_what_may_be_shared() -> None:
    """Shares for shared only; exclusive is a whole device, or its one instance."""
    assert keys(ask("H100", gib=20), mig=False, shareable=True) == ["gpu:1:0", "share:1:252"]
    assert keys(ask("H100", gib=20, isolation=Isolation.MIG), mig=False, shareable=True) == ["gpu:1:0"]
    assert keys(ask("H100", gib=5, isolation=Isolation.EXCLUSIVE)) == ["7g"]
    assert keys(ask("H100", gib=5, media=True)) == ["1g.me", "7g"]


def test_several_whole_devices_share_what_is_asked_for() -> None:
    """And MIG instances do not reach each other."""
    assert keys(ask("H100:4", gib=300), mig=False) == ["gpu:4:0"]
    assert refused(ask("H100:4", gib=300)) == "count"
    assert refused(ask("H100:4", gib=400), mig=False) == "vram"
    assert refused(ask("A100", gib=5)) == "type"


def test_what_is_too_slow_is_no_option_and_what_is_fastest_for_its_cost_wins() -> None:
    """3g and 4g cost half a device each; the one that does more is cheaper for it."""
    points = {"2g": (30.0, 90.0), "3g": (60.0, 50.0), "4g": (62.0, 48.0), "7g": (110.0, 30.0)}
    curves = Curves(
        {(H100.name, k): (ThroughputPoint(batch=8, throughput=t, p95_ms=p),) for k, (t, p) in points.items()}
    )
    made = options(ask("H100", gib=15, curves=curves, slo_ms=60.0), H100, mig=True, shareable=False)

    assert isinstance(made, list)
    by_key = {H100.cuts[o.profile].profile.key: o for o in made}
    assert "2g" not in by_key
    assert by_key["3g"].level(3.95) < by_key["7g"].level(3.95) < by_key["1g.2x"].level(3.95)
    slow = options(ask("H100", curves=curves, slo_ms=1.0), H100, mig=True, shareable=False)
    assert slow == NoOption(filter="slo")


def test_a_whole_device_that_is_too_slow_is_out() -> None:
    """So is its share."""
    curves = Curves({(H100.name, whole()): (ThroughputPoint(batch=1, throughput=1, p95_ms=500),)})

    made = options(ask("H100", gib=8, curves=curves, slo_ms=100.0), H100, mig=False, shareable=True)

    assert made == NoOption(filter="slo")


def test_the_same_way_counts_once() -> None:
    """ "H100" and "ANY" may both name it."""
    made = options(ask("H100", "ANY"), H100, mig=False, shareable=False)

    assert isinstance(made, list)
    assert [option.choice for option in made] == [0]


def test_slots_are_taken_as_they_are() -> None:
    """A CPU slot, a whole GPU, a part of one."""
    part = Slot(id="s", kind=SliceKind.SHARE, type="T4", memory=8192, ppm=500_000)
    full = Slot(id="g", kind=SliceKind.GPU, type="T4", memory=15_360, ppm=1_000_000)
    mig = Slot(id="m", kind=SliceKind.MIG, type="H100", memory=20_096, ppm=250_000)

    assert isinstance(slot_options(ask("T4", gib=8), part), list)
    assert slot_options(ask("T4", gib=9), part) == NoOption(filter="vram", largest=8192)
    assert slot_options(ask("T4"), part) == NoOption(filter="vram", largest=8192)
    assert slot_options(ask("T4", gib=8, isolation=Isolation.MIG), part) == NoOption(filter="isolation", largest=8192)
    assert slot_options(ask("ANY", gib=8, isolation=Isolation.EXCLUSIVE), mig) == NoOption(
        filter="isolation", largest=20_096
    )
    assert isinstance(slot_options(ask("ANY", gib=8, isolation=Isolation.MIG), mig), list)
    assert isinstance(slot_options(ask("T4", isolation=Isolation.EXCLUSIVE), full), list)
    assert slot_options(ask("T4:2"), full) == NoOption(filter="count", largest=15_360)
    assert slot_options(ask(), full) == NoOption(filter="type")


def test_a_whole_device_that_an_agent_offers_has_its_curve() -> None:
    """The cut of a part is unknown, so it counts as not measured."""
    full = Slot(id="g", kind=SliceKind.GPU, type="T4", memory=15_360, ppm=1_000_000)
    known = Curves({("T4", whole()): (ThroughputPoint(batch=1, throughput=5, p95_ms=50),)})

    made = slot_options(ask("T4", curves=known, slo_ms=60.0), full)
    assert isinstance(made, list)
    assert made[0].throughput == 5
    assert slot_options(ask("T4", curves=known, slo_ms=40.0), full) == NoOption(filter="slo")
    unknown = slot_options(ask("T4", curves=Curves({}), slo_ms=40.0), full)
    assert isinstance(unknown, list)
    assert unknown[0].throughput is None


def test_spot_is_cheaper_but_has_its_risk() -> None:
    """Prices are the operator's; cost goes in steps of 5 %."""
    prices = Prices(book=PriceBook(rates={"h200": 4 * 10**9, "h100": 3 * 10**9, "cpu": 10**8, "spot": 4 * 10**8}))

    assert prices.of(H200, Domain()) == 4.0
    assert prices.of(H200, Domain(spot=True)) == pytest.approx(4.0 * 0.4 * 1.15)
    assert prices.of(H100, Domain()) == 3.0
    half = Option(kind=SliceKind.MIG, choice=0, memory=1, part=0.5, throughput=10.0)
    dear = Option(kind=SliceKind.MIG, choice=0, memory=1, part=0.505, throughput=10.0)
    assert half.level(4.0) == dear.level(4.0) < half.level(4.4)
    assert half.ppm == 500_000


def test_what_was_learnt_to_be_too_slow_comes_last_and_is_no_refusal() -> None:
    """After what was never measured: a bad minute must not leave a function without a place."""

    def slow(*, hard: bool) -> Curves:
        return Curves({(H100.name, "3g"): (ThroughputPoint(batch=8, throughput=60.0, p95_ms=90.0, hard=hard),)})

    learnt = options(ask("H100", gib=30, curves=slow(hard=False), slo_ms=50.0), H100, mig=True, shareable=False)
    measured = options(ask("H100", gib=30, curves=slow(hard=True), slo_ms=50.0), H100, mig=True, shareable=False)

    assert isinstance(learnt, list)
    assert isinstance(measured, list)
    by_key = {H100.cuts[o.profile].profile.key: o for o in learnt}
    assert by_key["3g"].slow
    assert by_key["7g"].level(3.95) < by_key["3g"].level(3.95)
    assert [H100.cuts[o.profile].profile.key for o in measured] == ["4g", "7g"]


def test_a_share_is_as_fast_as_it_was_measured_to_be_or_as_its_part_of_the_whole() -> None:
    """Its own curve goes first."""
    whole_only = {(H100.name, whole()): (ThroughputPoint(batch=8, throughput=64.0, p95_ms=40.0),)}
    own = whole_only | {(H100.name, "share:252"): (ThroughputPoint(batch=8, throughput=30.0, p95_ms=60.0),)}

    def share(curves: Curves, slo_ms: float | None = None) -> float | None:
        made = options(ask("H100", gib=20, curves=curves, slo_ms=slo_ms), H100, mig=False, shareable=True)
        assert isinstance(made, list)
        return next((o.throughput for o in made if o.units), None)

    assert share(Curves(whole_only)) == pytest.approx(64.0 * 0.252)
    assert share(Curves(own)) == 30.0
    assert share(Curves(own), 50.0) is None


def test_what_is_to_be_measured_is_had_as_that_slice_only() -> None:
    """Of one device, of one kind; where it cannot be had, it is refused by that name."""
    assert keys(ask("H100", gib=15, slice="H100-80GB/3g")) == ["3g"]
    assert refused(ask("H100", gib=15, slice="H100-80GB/1g")) == "slice"
    assert refused(ask("H100", gib=15, slice="A100-80GB/3g")) == "slice"
    assert keys(ask("H100", gib=15, slice="H100-80GB/whole"), mig=False, shareable=True) == ["gpu:1:0"]
    slot = Slot(id="cpu-0", kind=SliceKind.CPU, type="CPU", memory=1024, ppm=250_000)
    assert isinstance(slot_options(ask(slice="CPU/slot"), slot), list)
    assert slot_options(ask(slice="T4/whole"), slot) == NoOption(filter="slice")
