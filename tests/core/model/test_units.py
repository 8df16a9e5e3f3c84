"""Memory, GPUs and money."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.usage_facts import CallUnit
from pilotlight_core.model.units import (
    COST_UNITS,
    MOST_SOLD,
    UNIT_PRICES,
    GpuAsk,
    cost_of,
    duration_text,
    memory_text,
    money,
    most_units_fault,
    parse_gpu,
    parse_memory,
    rate,
    shown_money,
    sold_units,
    split_evenly,
    units_money,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [("10GiB", 10 * 2**30), ("512MiB", 512 * 2**20), ("1.5GB", 1_500_000_000), (1024, 2**30), ("2 gib", 2 * 2**30)],
)
def test_memory_is_read(text: str | int, size: int) -> None:
    """Units are binary or decimal by their name; an int is MiB."""
    assert parse_memory(text, "memory") == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1000, "1000 B"), (1024, "1 KiB"), (3 * 2**29, "1536 MiB"), (2**31, "2 GiB"), (2**50, "1024 TiB")],
)
def test_memory_is_shown_exactly(size: int, text: str) -> None:
    """In the largest unit of which it is a whole number."""
    assert memory_text(size) == text


@pytest.mark.parametrize("text", ["", "10", "GiB", "-1GiB", "1e9", 0, -5, True, "0MiB"])
def test_what_is_not_memory_names_its_field(text: str | int) -> None:
    """The error names the option."""
    with pytest.raises(BadInput) as refused:
        parse_memory(text, "vram")

    assert refused.value.more["field"] == "vram"


def test_gpus_are_read() -> None:
    """Type and count; the type is compared in capitals."""
    assert parse_gpu("h100:2") == GpuAsk("H100", 2)
    assert parse_gpu("A100-80GB") == GpuAsk("A100-80GB", 1)
    for text in ("", "H100:0", "H100:", ":2", "H 100"):
        with pytest.raises(BadInput):
            parse_gpu(text)


def test_an_hour_of_a_device_costs_its_price() -> None:
    """3.95 dollars an hour, for an hour, is 3.95 dollars."""
    assert money(cost_of(3_600_000_000_000, 1_000_000, 3_950_000_000), 2) == "3.95"


@given(st.lists(st.integers(0, 10**12), max_size=50), st.integers(1, 10**6), st.integers(0, 10**11))
def test_costs_sum_exactly(parts: list[int], ppm: int, price: int) -> None:
    """The cost of a sum is the sum of the costs, whatever the cut."""
    assert sum((cost_of(part, ppm, price) for part in parts), Fraction(0)) == cost_of(sum(parts), ppm, price)


@given(st.integers(0, 10**15), st.integers(1, 500))
def test_an_even_split_sums_exactly_and_differs_by_one(total: int, parts: int) -> None:
    """Largest remainder."""
    shares = split_evenly(total, parts)

    assert sum(shares) == total
    assert len(shares) == parts
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1.0, "0 s"),
        (0.28, "280 ms"),
        (1.5, "1500 ms"),
        (2.4, "2 s"),
        (12.4, "12 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (2e5, "2 days"),
    ],
)
def test_times_are_told_in_the_unit_that_fits(seconds: float, said: str) -> None:
    """From two of a unit on, so that no figure is rounded by more than a quarter."""
    assert duration_text(seconds) == said


def test_rates_are_told_without_powers_of_ten() -> None:
    """Four digits, whatever their size."""
    assert [rate(value) for value in (1.6564, 396.24, 100_312.0, 1_047_499.0)] == [
        "1.656",
        "396.2",
        "100,300",
        "1,047,000",
    ]


def test_money_is_shown_in_few_digits() -> None:
    """Cents where there are dollars; below, what says something."""
    shown = [shown_money(amount) for amount in (0, "0.000000012345", 0.5, "1.005", 12.345, 999.9, 1_234.5, 123_456_789)]
    assert shown == ["0.00", "0.0000000123", "0.5", "1.00", "12.35", "999.90", "1,234", "123,500,000"]
    assert shown_money(Fraction(-1, 3)) == "-0.333"


@given(st.integers(-(10**30), 10**30), st.sampled_from([2, 12]))
def test_money_of_integers_is_that_of_fractions(units: int, places: int) -> None:
    """Rounded half to even; a hair below nothing keeps its sign, as a decimal does."""
    assert units_money(units, places) == money(Fraction(units, COST_UNITS), places)


def test_money_is_rounded_half_to_even() -> None:
    """On both sides of 0."""
    half = COST_UNITS // 200
    assert [units_money(half * times, 2) for times in (1, 3, 5, -1, -3)] == ["0.00", "0.02", "0.02", "-0.00", "-0.02"]


def test_what_is_sold_is_named_and_bounded() -> None:
    """Of each unit as many as its function names at most."""
    most = {"images": 5, "seconds": 9, "custom": 4}
    assert sold_units({"images": 7, "custom": 3}, most) == {"images": 5, "custom": 3}
    assert sold_units({"images": 7}, {}) == {}


def test_bounds_are_of_units_that_there_are() -> None:
    """Each may have a price."""
    assert most_units_fault({}) == most_units_fault(dict.fromkeys(CallUnit, MOST_SOLD)) == ""
    assert most_units_fault({"tokens": 1}).startswith("there is no unit 'tokens': expected some of prompt_tokens, ")
    assert set(UNIT_PRICES) == set(CallUnit)


@pytest.mark.parametrize("count", [0, -1, MOST_SOLD + 1, 1.5, True, "3", None])
def test_another_number_is_refused_by_name(count: Any) -> None:
    """Nothing at all would be as no bound is."""
    assert most_units_fault({"images": count}).startswith("images must be a whole number from 1 to 10000000000")
