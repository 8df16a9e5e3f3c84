"""Forecasts what a month will have cost at its end, and says how far such forecasts were off. Pure.

Three simple methods forecast each known day from those before it, as far ahead as the month's end is now; the one that
missed least is taken, and the miss that eight of ten stayed within is the error that is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from statistics import fmean

from pilotlight_core.model.api.billing_api import MonthForecast
from pilotlight_core.model.units import money
from pilotlight_gateway.reports.billing_periods import next_month

KNOWN_DAYS = 56
"""How far back it looks."""
LEAST_TRIALS = 5
"""Forecasts of the past, below which no error is told."""
WITHIN = 0.8
"""The part of them that missed by no more than the error."""
DAY_S = 86_400
Method = Callable[[Sequence[float], int], float]
"""The days so far, and how many days after the last -> that day's cost."""


def forecast_month(daily: Mapping[date, Fraction], at: float, currency: str = "USD") -> MonthForecast:
    """The forecast at the unix second `at`, from the cost of each day; a day that is missing cost nothing."""
    now = datetime.fromtimestamp(at, UTC)
    today, first = now.date(), now.date().replace(day=1)
    end = next_month(first)
    so_far = sum((cost for day, cost in daily.items() if first <= day < end), Fraction(0))
    month = first.isoformat()[:7]
    past = _past(daily, today)
    if not past:
        return MonthForecast(month=month, so_far=money(so_far), expected=money(so_far), currency=currency)
    ahead = (end - today).days
    name, misses = min(
        ((name, _misses(past, method, ahead)) for name, method in METHODS.items()),
        key=lambda found: fmean(found[1]) if found[1] else 0.0,
    )
    left_today = 1.0 - (at % DAY_S) / DAY_S
    method = METHODS[name]
    to_come = left_today * method(past, 1) + sum(method(past, 1 + day) for day in range(1, ahead))
    expected = so_far + Fraction(to_come)
    told = MonthForecast(
        month=month, so_far=money(so_far), expected=money(expected), method=name, days=len(past), currency=currency
    )
    if len(misses) < LEAST_TRIALS:
        return told
    error = sorted(misses)[min(len(misses) - 1, int(WITHIN * len(misses)))]
    off = Fraction(error) * Fraction(to_come)
    return MonthForecast(
        month=month, so_far=told.so_far, expected=told.expected, low=money(max(so_far, expected - off)),
        high=money(expected + off), error=round(error, 4), method=name, days=len(past), currency=currency,
    )  # fmt: skip


def _past(daily: Mapping[date, Fraction], today: date) -> list[float]:
    """The whole days before today, from the first with a cost."""
    begun = min((day for day, cost in daily.items() if cost), default=today)
    start = max(begun, today - timedelta(days=KNOWN_DAYS))
    days = (today - start).days
    return [float(daily.get(start + timedelta(days=number), 0)) for number in range(max(0, days))]


def _misses(past: Sequence[float], method: Method, ahead: int) -> list[float]:
    """How far a method was off, as a part of what it forecast, from each day that has some before and after it."""
    found = []
    for known in range(1, len(past)):
        length = min(ahead, len(past) - known)
        told = sum(method(past[:known], 1 + day) for day in range(length))
        came = sum(past[known : known + length])
        if told:
            found.append(abs(came - told) / told)
    return found


def _weekdays(past: Sequence[float], ahead: int) -> float:
    same = [past[place] for place in range(len(past) - 1 - (-ahead % 7), -1, -7)][:4]
    return fmean(same) if same else fmean(past)


METHODS: Mapping[str, Method] = {
    "mean of 7 days": lambda past, _: fmean(past[-7:]),
    "mean of 28 days": lambda past, _: fmean(past[-28:]),
    "same weekdays": _weekdays,
}
