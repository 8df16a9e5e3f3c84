"""Prices are data, exact, and refused by name when they are wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from pilotlight_core.model.devices import UNIT_PPM
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import (
    Charge,
    DatedRate,
    PriceBook,
    PriceTerms,
    check_price,
    load_prices,
    price_terms,
    records_of,
    unit_charges,
)
from pilotlight_core.model.units import cost_of


def test_the_standard_book_prices_every_device_that_we_name() -> None:
    """All ids have a rate above zero; others are known to be unknown, and not free."""
    book = load_prices()

    for price in ("cpu", "t4", "a10", "l4", "l40s", "a30", "a100", "h100", "h200", "b200"):
        assert book.rate(price) > 0
    assert not book.knows("abacus")
    assert book.rate("abacus") == book.rate("gpu") > 0
    assert book.dollars("h100") == book.rate("h100") / 10**9


def test_a_file_overrides_single_prices(tmp_path: Path) -> None:
    """What the file does not name keeps its price."""
    path = tmp_path / "prices.toml"
    path.write_text("version = 7\n[prices.cpu]\nnano_usd_per_hour = 5\n[prices.abacus]\nnano_usd_per_hour = 1\n")

    book = load_prices(path)

    assert (book.version, book.rate("cpu"), book.rate("abacus")) == (7, 5, 1)
    assert book.rate("h200") == load_prices().rate("h200")


@pytest.mark.parametrize(
    "text", ["not toml [", "[prices.cpu]\nnano_usd_per_hour = 1.5\n", "[prices.cpu]\nnano_usd_per_hour = -1\n",
             "[prices.cpu]\nnano_usd_per_hour = 1_000_000_000_000_000\n", "[prices]\ncpu = 3\n"],
)  # fmt: skip
def test_a_wrong_price_file_is_refused(tmp_path: Path, text: str) -> None:
    """By the name of the file and the entry."""
    path = tmp_path / "prices.toml"
    path.write_text(text)

    with pytest.raises(BadInput, match=r"prices\.toml"):
        load_prices(path)


def test_a_gpu_in_software_costs_what_the_real_one_does() -> None:
    """Under an id that says so; one of a GPU that has no price has none either."""
    book = load_prices()

    assert book.rate("fake-h100") == book.rate("h100") > 0
    assert book.knows("fake-h100")
    assert (book.knows("fake-fake-h100"), book.rate("fake-nothing")) == (False, book.rate("gpu"))


def test_a_host_costs_what_its_cores_do() -> None:
    """However many there are; nothing else is a number of things."""
    book = load_prices()

    assert book.rate("16xcpu") == 16 * book.rate("cpu")
    assert book.knows("16xcpu")
    assert not any(book.knows(price) for price in ("0xcpu", "-1xcpu", "1000000xcpu", "xcpu", "2xabacus"))


def test_a_rate_is_that_of_the_instant() -> None:
    """The last one that has begun; before the first the configured one; a fake GPU's and several cores' follow."""
    book = PriceBook(rates={"cpu": 10, "h100": 500, "gpu": 100})
    book.put(
        "h100", [DatedRate(starts_at=200.0, nano_usd_per_hour=400), DatedRate(starts_at=100.0, nano_usd_per_hour=600)]
    )
    book.put("cpu", [DatedRate(starts_at=100.0, nano_usd_per_hour=11)])

    assert [book.rate("h100", at) for at in (0.0, 99.9, 100.0, 199.9, 200.0)] == [500, 500, 600, 600, 400]
    assert (book.rate("fake-h100", 150.0), book.rate("16xcpu", 150.0), book.rate("abacus", 150.0)) == (600, 176, 100)
    assert book.rate("gpu", 150.0) == 100
    book.put("h100", None)
    assert book.rate("h100", 150.0) == 500


def test_the_present_rates_are_those_of_the_last_refresh() -> None:
    """What is asked without an instant needs no look at a clock; the book says when the next rate begins."""
    book = PriceBook(rates={"h100": 500})
    book.put(
        "h100", [DatedRate(starts_at=100.0, nano_usd_per_hour=600), DatedRate(starts_at=200.0, nano_usd_per_hour=400)]
    )

    found = [(book.refresh(at), book.rate("h100")) for at in (50.0, 100.0, 250.0)]

    assert found == [(100.0, 500), (200.0, 600), (None, 400)]
    assert book.revision == 2
    book.put("h100", None)
    book.refresh(250.0)
    assert book.rate("h100") == 500


def test_a_file_may_say_what_holds_later(tmp_path: Path) -> None:
    """From a day's midnight or an instant on; as records of the registry it is the same."""
    path = tmp_path / "prices.toml"
    path.write_text(
        "[prices.h100]\nnano_usd_per_hour = 5\n"
        "[[prices.h100.later]]\nfrom = 2027-01-01\nnano_usd_per_hour = 6\n"
        "[[prices.h100.later]]\nfrom = 2027-01-01T12:00:00+01:00\nnano_usd_per_hour = 7\n"
    )
    new_year = 1_798_761_600.0

    book = load_prices(path)

    assert [book.rate("h100", new_year + hours * 3_600.0) for hours in (-1, 0, 10, 11)] == [5, 6, 6, 7]
    (record,) = records_of(path)
    assert [(rate.starts_at - new_year, rate.nano_usd_per_hour) for rate in record.rates[1:]] == [
        (0.0, 6),
        (39_600.0, 7),
    ]
    assert record.rates[0] == DatedRate(starts_at=0.0, nano_usd_per_hour=5)


@pytest.mark.parametrize(
    "later",
    [
        "later = 3",
        "later = [{from = 2027-01-01T00:00:00, nano_usd_per_hour = 1}]",
        "later = [{nano_usd_per_hour = 1}]",
        "later = [{from = 2027-01-01}]",
        "later = [{from = 9999-12-31T23:59:59-01:00, nano_usd_per_hour = 1}]",
    ],
)
def test_a_wrong_date_is_refused(tmp_path: Path, later: str) -> None:
    """By the name of its price."""
    path = tmp_path / "prices.toml"
    path.write_text(f"[prices.h100]\nnano_usd_per_hour = 5\n{later}\n")

    with pytest.raises(BadInput, match=r"prices\.h100"):
        load_prices(path)


def test_books_do_not_share_their_rates() -> None:
    """A process that follows changes its own alone."""
    first, second = load_prices(), load_prices()
    first.put("h100", [DatedRate(nano_usd_per_hour=1)])
    first.refresh(1.0)

    assert first.rate("h100") == 1
    assert second.rate("h100") > 1


def test_how_where_and_which_part_may_cost_otherwise() -> None:
    """What says most goes first, from its own date on; on spot nodes the rest costs a part of it."""
    rates = {"h100": 1_000, "gpu": 500, "spot": 400_000_000, "h100.eu": 2_000, "h100.spot.us": 300, "h100.1of8": 1_600}
    book = PriceBook(rates=rates)
    book.put("h100.us", [DatedRate(starts_at=100.0, nano_usd_per_hour=1_100)])
    book.refresh(0.0)

    def rate(purchase: str = "", region: str = "", ppm: int = 0, at: float | None = None, price: str = "h100") -> int:
        return book.rate(price, at, purchase=purchase, region=region, ppm=ppm)

    assert (rate(), rate("spot"), rate(region="eu"), rate("spot", "eu")) == (1_000, 400, 2_000, 800)
    assert (rate("spot", "us"), rate(ppm=125_000), rate(ppm=250_000)) == (300, 1_600, 1_000)
    assert (rate(region="us", at=99.0), rate(region="us", at=100.0), rate(region="us")) == (1_000, 1_100, 1_000)
    assert (rate("spot", price="fake-h100"), rate("spot", price="abacus")) == (400, 200)
    book.refresh(100.0)
    assert rate(region="us") == 1_100
    book.region = "eu"
    assert (book.rate("h100"), book.dollars("h100", purchase="spot")) == (2_000, 800 / 10**9)


def test_what_costs_what_any_gpu_does_has_no_price_of_its_own() -> None:
    """An operator is told of it."""
    assert not load_prices().knows("gpu")
    assert not load_prices().knows("fake-gpu")


@pytest.mark.parametrize(
    ("price", "terms"),
    [
        ("h100", PriceTerms("h100")),
        ("h100.spot", PriceTerms("h100", "spot")),
        ("h100.on-demand.eu", PriceTerms("h100", "on-demand", "eu")),
        ("h100.eu", PriceTerms("h100", region="eu")),
        ("h100.1of7", PriceTerms("h100", most_ppm=142_858)),
        ("h100.spot.eu.1of8", PriceTerms("h100", "spot", "eu", 125_000)),
    ],
)
def test_an_id_says_how_where_and_which_part(price: str, terms: PriceTerms) -> None:
    """In this order; what it does not say holds for all."""
    assert price_terms(price) == terms
    assert terms.is_special is ("." in price)


@pytest.mark.parametrize(
    "price", ["", "h 100", "h100.", "h100.eu.spot", "h100.1of7.eu", "h100.8of7", "h" * 64, "a.b.c"]
)
def test_other_ids_are_none(price: str) -> None:
    """Nothing would be billed by them."""
    assert price_terms(price) is None


def test_it_holds_where_all_that_it_says_is_so() -> None:
    """Of parts up to its own."""
    terms = PriceTerms("h100", "spot", "eu", 142_858)

    assert terms.holds("spot", "eu", 142_857)
    assert not any(
        (terms.holds("on-demand", "eu", 1), terms.holds("spot", "us", 1), terms.holds("spot", "eu", 142_859))
    )
    assert PriceTerms("h100").holds("spot", "eu", 1_000_000)


def test_what_says_more_goes_first() -> None:
    """Then purchase, region, and the smallest part."""
    ids = ["h100.1of8", "h100.1of2", "h100.eu", "h100.spot", "h100.spot.eu"]
    terms = [found for price in ids if (found := price_terms(price)) is not None]

    ranked = sorted(terms, key=lambda each: each.rank, reverse=True)
    assert ranked == [terms[4], terms[3], terms[2], terms[0], terms[1]]


def test_a_tenant_may_pay_less(tmp_path: Path) -> None:
    """From a date on, by request or in a file; more than a dollar for a dollar is none. No line has such a price."""
    book = PriceBook(rates={"cpu": 10, "gpu": 100})
    book.put("tenant.acme", [DatedRate(starts_at=100.0, nano_usd_per_hour=800_000_000)])
    book.put("tenant.rival", [DatedRate(nano_usd_per_hour=2 * 10**9)])
    path = tmp_path / "prices.toml"
    path.write_text('[prices."tenant.acme"]\nnano_usd_per_hour = 900_000_000\n')

    assert [book.discount("acme", at) for at in (99.0, 100.0)] == [0, 200_000_000]
    assert [book.discount(name, 200.0) for name in ("rival", "birch", "")] == [0, 0, 0]
    assert load_prices(path).discount("acme") == 100_000_000
    assert price_terms(f"tenant.{'a' * 63}") is not None


def least_of(book: PriceBook, price: str, at: float | None = None, **more: str) -> int:
    return book.rate_and_least(price, at, **more)[1]  # type: ignore[arg-type]


def test_a_start_may_be_billed_a_least(tmp_path: Path) -> None:
    """Of a product or of what says more; by the event's time, and now."""
    book = PriceBook(rates={"l4": 10, "gpu": 100, "spot": 10**9})
    book.put("l4", [
        DatedRate(nano_usd_per_hour=10), DatedRate(starts_at=100.0, nano_usd_per_hour=10, minimum_ms=50)
    ])  # fmt: skip
    book.put("l4.spot", [DatedRate(nano_usd_per_hour=5, minimum_ms=70)])
    revision = book.revision
    assert least_of(book, "l4") == 0
    book.refresh(150.0)

    assert (least_of(book, "l4"), least_of(book, "fake-l4"), book.longest_minimum_ns("l4")) == (
        50_000_000, 50_000_000, 70_000_000
    )  # fmt: skip
    assert book.revision == revision + 1
    assert [least_of(book, "l4", at) for at in (99.0, 100.0)] == [0, 50_000_000]
    assert least_of(book, "l4", 0.0, purchase="spot") == 70_000_000
    assert least_of(book, "abacus", 150.0) == book.longest_minimum_ns("abacus") == 0
    path = tmp_path / "prices.toml"
    path.write_text("[prices.l4]\nnano_usd_per_hour = 7\nminimum_ms = 20\n")
    assert (least_of(load_prices(path), "l4"), load_prices(path).rate("l4")) == (20_000_000, 7)
    assert records_of(path)[0].rates == (DatedRate(nano_usd_per_hour=7, minimum_ms=20),)
    path.write_text("[prices.l4]\nnano_usd_per_hour = 7\nminimum_ms = -20\n")
    with pytest.raises(BadInput, match="minimum_ms"):
        load_prices(path)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('[prices."tenant.acme"]\nnano_usd_per_hour = 1_000_000_001', r"tenant\.acme: .* from 0 to 1000000000, since"),
        ("[prices.prompt_tokens]\nnano_usd_per_hour = 7\nminimum_ms = 100", "prompt_tokens: expected no minimum_ms"),
        ("[prices.cpu_core]\nnano_usd_per_hour = 7\nminimum_ms = 100", "cpu_core: expected no minimum_ms"),
        ('[prices."tenant.acme"]\nnano_usd_per_hour = 7\nminimum_ms = 1', r"tenant\.acme: expected no minimum_ms"),
        (
            '[prices."tenant.acme"]\nnano_usd_per_hour = 7\nlater=[{from = 2026-12-01,nano_usd_per_hour = 1000000001}]',
            r"tenant\.acme: .* at most 1 for each dollar",
        ),
    ],
)
def test_a_file_is_held_to_what_a_request_is(entry: str, expected: str, tmp_path: Path) -> None:
    """What is wrong is named, with what was expected."""
    path = tmp_path / "prices.toml"
    path.write_text(entry)
    for read in (load_prices, records_of):
        with pytest.raises(BadInput, match=expected) as refused:
            read(path)
        assert refused.value.more["field"].startswith("prices.")
    path.write_text('[prices."tenant.acme"]\nnano_usd_per_hour = 1_000_000_000\nminimum_ms = 0\n')
    assert load_prices(path).discount("acme") == 0


def test_units_are_sold_for_a_million() -> None:
    """Only those that have a price, from when on they have it."""
    book = PriceBook(rates={"cpu": 10})
    counted = {"prompt_tokens": 2_000_000, "images": 3}
    assert (book.sells_units, list(unit_charges(counted, book))) == (False, [])
    book.put("prompt_tokens", [DatedRate(starts_at=100.0, nano_usd_per_hour=150_000_000)])

    assert list(unit_charges(counted, book, 99.0)) == []
    (charge,) = unit_charges(counted, book, 100.0)
    assert charge == Charge("prompt_tokens", UNIT_PPM, 150_000_000, 2_000_000)
    assert cost_of(charge.amount, charge.ppm, charge.rate) == Fraction(3, 10)
    assert [one.amount for one in unit_charges({"prompt_tokens": 2**53}, book, 100.0)] == [10**10]


def test_a_tenant_may_have_the_name_of_a_part() -> None:
    """What it pays of a dollar is no price of a product."""
    book = load_prices()
    book.put("tenant.9of7", [DatedRate(starts_at=100.0, nano_usd_per_hour=800_000_000)])
    assert (book.discount("9of7", 50.0), book.discount("9of7", 150.0)) == (0, 200_000_000)
    assert book.has_discounts


def test_prices_that_are_as_before_change_nothing() -> None:
    """They are read each ten seconds, and there may be thousands."""
    book = load_prices()
    rates = {f"tenant.t{number}": [DatedRate(nano_usd_per_hour=900_000_000)] for number in range(3_000)}
    book.put_all(rates)
    book.refresh(10.0)
    known = book.rate("l4")
    book.put_all(rates)
    assert (book.discount("t7"), book.rate("l4"), len(book.dated)) == (100_000_000, known, 3_000)
    book.put_all({"tenant.t7": None})
    book.refresh(20.0)
    assert book.discount("t7") == 0


def test_what_is_to_come_is_known_in_its_order() -> None:
    """Also what changes nothing now."""
    book = PriceBook(rates={"cpu": 10, "l4": 5})
    before = book.dated_revision
    book.put("l4", [DatedRate(nano_usd_per_hour=5), DatedRate(starts_at=300.0, nano_usd_per_hour=9, minimum_ms=7)])
    book.put("cpu", [DatedRate(starts_at=200.0, nano_usd_per_hour=10)])
    book.refresh(100.0)

    assert book.changes_from(100.0) == [(200.0, "cpu"), (300.0, "l4")]
    assert (book.changes_from(200.0), book.changes_from(300.0)) == ([(300.0, "l4")], [])
    assert (book.dated_revision, book.longest_minimum_ns("l4"), book.longest_minimum_ns("l4", 300.0)) == (
        before + 2, 0, 7_000_000,
    )  # fmt: skip


def test_the_id_of_a_price_is_checked() -> None:
    """Of all kinds, by whoever keeps them."""
    for price in ("h100", "h100.spot.eu.1of7", "tenant.acme", "prompt_tokens"):
        assert check_price(price) == price
    for wrong in ("", "h100.", "h100..eu", "a b", "x" * 100):
        with pytest.raises(BadInput, match="is no price: expected one such as h100"):
            check_price(wrong)
