"""Prices are data, exact, and refused by name when they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import cost_text, load_prices
from pilotlight_core.model.units import cost_of, money

NS = st.integers(0, 10**15)
PPM = st.integers(0, 8_000_000)
RATE = st.integers(0, 10**11)


@given(NS, PPM, RATE)
def test_a_receipts_cost_is_what_the_report_says_of_one_line(ns: int, ppm: int, rate: int) -> None:
    """The integer way of the hot path and exact fractions print the same twelve places."""
    assert cost_text(ns, ppm, rate) == money(cost_of(ns, ppm, rate))


def test_half_a_picodollar_is_rounded_to_even() -> None:
    """Money is rounded half-even, once."""
    half_of_a_picodollar = 1_800_000_000  # an hour of 1/2,000,000,000 of a dollar per hour, in ns at the rate 1 nano
    assert [cost_text(n * half_of_a_picodollar, 1_000_000, 1) for n in (1, 3, 5)] == [
        money(cost_of(n * half_of_a_picodollar, 1_000_000, 1)) for n in (1, 3, 5)
    ]


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
             "[prices]\ncpu = 3\n"],
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
