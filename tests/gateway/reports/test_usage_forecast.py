"""Forecasts of a month, and what they say of themselves."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from pilotlight_gateway.reports.usage_forecast import METHODS, forecast_month

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def days(count: int, cost: int = 10) -> dict[date, Fraction]:
    """So much on each of the days before the 21st of November."""
    return {NOON.date() - timedelta(days=1 + number): Fraction(cost) for number in range(count)}


def test_what_is_always_alike_is_forecast_without_an_error() -> None:
    """Twenty days at ten dollars, half of today still to come, and nine more days."""
    found = forecast_month(days(20), NOON.timestamp())
    assert (found.month, found.so_far, found.days) == ("2026-11", "200.000000000000", 20)
    assert Decimal(found.expected) == Decimal(found.low or 0) == Decimal(found.high or 0) == 295
    assert found.error == 0.0


def test_the_method_that_missed_least_is_taken() -> None:
    """Weekends are quiet, which only one method knows; the range is what it was off by."""
    daily = {
        day: Fraction(1 if day.weekday() >= 5 else 20)
        for day in (NOON.date() - timedelta(days=n) for n in range(1, 50))
    }
    found = forecast_month(daily, NOON.timestamp())
    assert found.method == "same weekdays"
    to_come = 1 * 0.5 + 1 + 5 * 20 + 2 * 1 + 20  # the 21st is a Saturday
    assert abs(float(found.expected) - float(found.so_far) - to_come) < 1e-6
    assert found.error is not None
    assert found.low is not None
    assert found.high is not None
    assert float(found.so_far) <= float(found.low) <= float(found.expected) <= float(found.high)


def test_what_is_not_known_is_not_said() -> None:
    """No day: nothing is expected beyond what was used. Few days: no range."""
    nothing = forecast_month({}, NOON.timestamp())
    assert (nothing.expected, nothing.method, nothing.low) == ("0.000000000000", "", None)
    today = forecast_month({NOON.date(): Fraction(3)}, NOON.timestamp())
    assert (today.so_far, today.expected, today.method) == ("3.000000000000", "3.000000000000", "")
    few = forecast_month(days(3), NOON.timestamp())
    assert (few.days, few.error, few.low, few.high) == (3, None, None, None)
    assert Decimal(few.expected) == 30 + 5 + 90


def test_days_without_usage_count_as_nothing() -> None:
    """From the first day with a cost on."""
    daily = {NOON.date() - timedelta(days=14): Fraction(14)}
    assert METHODS["mean of 7 days"]([14.0] + [0.0] * 6, 1) == 2.0
    found = forecast_month(daily, NOON.timestamp())
    assert found.days == 14
    assert Decimal(found.expected) >= Decimal(found.so_far) == 14


def test_a_month_ends_with_its_last_second() -> None:
    """Then nothing is to come."""
    end = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    daily = {end.date() - timedelta(days=n): Fraction(1) for n in range(30)}
    found = forecast_month(daily, end.timestamp())
    assert abs(Decimal(found.expected) - 30) < Decimal("0.0001")
