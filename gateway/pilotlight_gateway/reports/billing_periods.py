"""Months that are billed: when each is closed. Pure.

A month is open while it runs and for `GRACE_DAYS` after it, so that usage that comes late is still in it. Then the fold
closes its days, and what comes later is booked in the next one.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import MONTH_PATTERN

GRACE_DAYS = 5
"""What agents kept while the bus was away arrives within them, or is in the next month."""
MONTH = re.compile(MONTH_PATTERN)


def closed_until(at: float) -> str:
    """The first day that is open at the unix second `at`: the first of a month."""
    return (datetime.fromtimestamp(at, UTC).date() - timedelta(days=GRACE_DAYS)).replace(day=1).isoformat()


def days_of_month(month: str) -> tuple[str, str]:
    """The first day of a month such as `2026-11`, and that of the next.

    Raises:
        BadInput: it is none.
    """
    if MONTH.match(month) is None:
        raise BadInput("month: expected a month such as 2026-11.", field="month")
    first = date.fromisoformat(f"{month}-01")
    return first.isoformat(), next_month(first).isoformat()


def next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)


def period_state(month: str, open_from: str, at: float) -> str:
    """draft, grace or final, at the unix second `at` in a ledger whose first open day is `open_from`."""
    _, until = days_of_month(month)
    if open_from >= until:
        return "final"
    return "draft" if datetime.fromtimestamp(at, UTC).date().isoformat() < until else "grace"


def final_from(month: str) -> str:
    """The day on which a month is closed."""
    _, until = days_of_month(month)
    return (date.fromisoformat(until) + timedelta(days=GRACE_DAYS)).isoformat()
