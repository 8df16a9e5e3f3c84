"""A tenant's invoice of the seeded month, to the last digit."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

from pilotlight_core.model.api.billing_api import Invoice
from pilotlight_core.model.units import COST_UNITS, money
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import late_lines, usage_sums
from pilotlight_gateway.ledger.usage_report import cost_units
from pilotlight_gateway.reports.invoices import GROUPS, invoice_heads, invoice_of, months_shown
from tests.gateway.reports.seeded_month import FIRST, MADE, UNTIL


def invoice(ledger: Ledger, tenant: str = "acme", at: float = MADE, open_from: str = UNTIL) -> Invoice:
    rows, late = usage_sums(ledger, tenant, FIRST, UNTIL, GROUPS), late_lines(ledger, tenant, FIRST, UNTIL)
    return invoice_of(tenant, "2026-11", rows, late, open_from=open_from, at=at, currency="USD")


def test_it_is_what_the_ledger_has(month: Ledger) -> None:
    """Of each tenant: the exact sum is rounded once, lines once each."""
    for tenant in ("acme", "birch", "cedar"):
        units = sum(cost_units(row) for row in usage_sums(month, tenant, FIRST, UNTIL, ()))
        found = invoice(month, tenant)
        assert found.total == money(Fraction(units, COST_UNITS))
        assert found.amount == money(Fraction(units, COST_UNITS), 2)
        apart = abs(sum(Decimal(line.cost) for line in found.lines) - Decimal(found.total))
        assert apart <= Decimal("1e-12") * len(found.lines)


def test_a_rate_has_a_line_of_its_own(month: Ledger) -> None:
    """A price that changed within the month is two."""
    lines = [line for line in invoice(month).lines if line.function == "shop.rank" and line.state == "busy"]
    assert [line.usd_per_hour for line in lines] == ["0.72", "0.7992"]
    assert invoice(month).calls == sum(line.calls for line in invoice(month).lines)


def test_what_comes_late_is_in_the_next_and_told(month: Ledger) -> None:
    """Usage of a closed day, and what was taken off its bill; nobody else's."""
    late, given = invoice(month).of_before
    assert (late.day, late.why, given.day, given.why) == ("2026-10-31", "late", "2026-10-31", "platform_fault")
    assert Decimal(given.cost) < 0 < Decimal(late.cost)
    assert invoice(month, "birch").of_before == ()


def test_its_state_is_that_of_the_month(month: Ledger) -> None:
    """The number stays."""
    during = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
    states = [invoice(month, at=during, open_from=FIRST), invoice(month, open_from=FIRST), invoice(month)]
    assert [found.state for found in states] == ["draft", "grace", "final"]
    assert {found.number for found in states} == {"acme-2026-11"}


def test_the_list_has_each_month_with_usage(month: Ledger) -> None:
    """The newest first; what was booked late is in its own month."""
    rows = usage_sums(month, "acme", *months_shown(MADE), ("day",))
    heads = invoice_heads("acme", rows, open_from=UNTIL, at=MADE)
    assert [(head.month, head.state, head.number) for head in heads] == [
        ("2026-11", "final", "acme-2026-11"), ("2026-10", "final", "acme-2026-10"),
    ]  # fmt: skip
    assert heads[0].amount == invoice(month).amount
    assert months_shown(MADE) == ("2025-01-01", "2026-12-09")
