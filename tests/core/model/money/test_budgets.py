"""Budgets: their periods, also where clocks jump, and what is no budget."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.money.budgets import (
    NEVER_ENDS,
    Budget,
    BudgetPeriod,
    budget_id,
    check_budget,
    span_of,
)
from tests.example_counts import examples

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia")
FIXED = (BudgetPeriod.DAY, BudgetPeriod.MONTH)


def clock(text: str, zone: str = "UTC") -> int:
    """The unix second at which the zone's clock shows `text`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize(
    ("period", "zone", "at", "begins", "ends"),
    [
        ("day", "UTC", "2026-11-25 17:10", "2026-11-25", "2026-11-26"),
        ("month", "UTC", "2026-12-31 23:59", "2026-12-01", "2027-01-01"),
        ("month", "Europe/Berlin", "2026-10-25 02:30", "2026-10-01", "2026-11-01"),
        ("day", "Europe/Berlin", "2026-10-25 12:00", "2026-10-25", "2026-10-26"),  # it has 25 hours
        ("month", "America/New_York", "2028-02-29 20:00", "2028-02-01", "2028-03-01"),
    ],
)
def test_a_period_is_a_day_or_a_month_of_its_zone(period: str, zone: str, at: str, begins: str, ends: str) -> None:
    """From midnight to midnight."""
    assert span_of(BudgetPeriod(period), zone, clock(at, zone)) == (clock(begins, zone), clock(ends, zone))


def test_the_lifetime_never_ends() -> None:
    """And began before everything."""
    assert span_of(BudgetPeriod.LIFETIME, "UTC", 1_790_000_000) == (0, NEVER_ENDS)


@given(period=st.sampled_from(FIXED), zone=st.sampled_from(ZONES), at=st.integers(min_value=10**9, max_value=4 * 10**9))
@examples(200)
def test_periods_follow_each_other_without_a_gap(period: BudgetPeriod, zone: str, at: int) -> None:
    """Each instant is in exactly one, all begin on whole hours of UTC, as the ledger sums."""
    span = span_of(period, zone, at)
    assert span.begins <= at < span.ends
    assert (span.begins % 3_600, span.ends % 3_600) == (0, 0)
    assert span_of(period, zone, int(span.ends)).begins == span.ends
    assert span_of(period, zone, span.begins) == span
    assert span_of(period, zone, span.begins - 1).ends == span.begins


def test_there_is_one_budget_of_each_scope_and_period() -> None:
    """Its id says which."""
    assert budget_id(BudgetPeriod.MONTH) == "month"
    assert budget_id(BudgetPeriod.DAY, "acme:zoo.chat") == "day:acme:zoo.chat"
    assert budget_id(BudgetPeriod.DAY, key="abc") == "day:key:abc"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"tz": "Mars/Phobos"}, "tz"),
        ({"tz": "../etc/passwd"}, "tz"),
        ({"thresholds": (80, 50)}, "thresholds"),
        ({"thresholds": (0,)}, "thresholds"),
        ({"thresholds": tuple(range(1, 20))}, "thresholds"),
        ({"function": "acme:zoo.chat", "key": "abc"}, "key"),
    ],
)
def test_what_is_no_budget_names_the_field(wrong: dict[str, object], field: str) -> None:
    """In one sentence."""
    with pytest.raises(BadInput) as caught:
        check_budget(Budget(**{"id": "month", "amount": 1} | wrong))  # type: ignore[arg-type]
    assert caught.value.more["field"] == field
    assert caught.value.detail.startswith(f"{field}: ")
