"""Prices are data, exact, and refused by name when they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import DatedRate, PriceBook, load_prices, records_of


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
