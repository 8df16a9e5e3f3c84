"""When months are closed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.reports.billing_periods import closed_until, days_of_month, final_from, period_state


def instant(year: int, month: int, day: int, hour: int = 0) -> float:
    return datetime(year, month, day, hour, tzinfo=UTC).timestamp()


def test_a_month_is_closed_some_days_after_its_end() -> None:
    """And not before: late usage has its days of grace."""
    assert closed_until(instant(2026, 12, 1)) == "2026-11-01"
    assert closed_until(instant(2026, 12, 5, 23)) == "2026-11-01"
    assert closed_until(instant(2026, 12, 6)) == "2026-12-01"
    assert closed_until(instant(2027, 1, 3)) == "2026-12-01"


def test_an_invoice_is_a_draft_then_in_grace_then_final() -> None:
    """Final is what the ledger has closed, not what the clock says."""
    assert period_state("2026-11", "2026-11-01", instant(2026, 11, 30, 23)) == "draft"
    assert period_state("2026-11", "2026-11-01", instant(2026, 12, 1)) == "grace"
    assert period_state("2026-11", "2026-11-01", instant(2026, 12, 30)) == "grace"
    assert period_state("2026-11", "2026-12-01", instant(2026, 12, 6)) == "final"
    assert final_from("2026-11") == "2026-12-06"


def test_a_month_is_named_as_2026_11() -> None:
    """Nothing else is one."""
    assert days_of_month("2026-12") == ("2026-12-01", "2027-01-01")
    for wrong in ("2026-13", "2026", "2026-1", "2026-11-01", "2026-11\n", ""):
        with pytest.raises(BadInput, match="expected a month"):
            days_of_month(wrong)
