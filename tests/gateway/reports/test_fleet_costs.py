"""What the seeded month's fleet earned, and what nobody paid for."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pilotlight_core.model.api.billing_api import FleetCosts
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import cost_of, money
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import device_sums, late_lines, usage_report, usage_sums
from pilotlight_gateway.reports.fleet_costs import GROUPS, fleet_costs, read_paid
from tests.gateway.reports.seeded_month import DAYS, FIRST, UNTIL

HOUR = 3_600 * 10**9


@pytest.fixture
def found(month: Ledger) -> FleetCosts:
    rows = usage_sums(month, None, FIRST, UNTIL, GROUPS)
    return fleet_costs(rows, device_sums(month, FIRST, UNTIL), {"h100": 1_900_000_000}, "USD")


def test_who_spends_most_is_first(month: Ledger, found: FleetCosts) -> None:
    """With what their invoices say."""
    totals = {name: usage_report(month, name, FIRST, UNTIL, ()).total.cost for name in ("acme", "birch", "cedar")}
    assert {one.tenant: one.cost for one in found.tenants} == totals
    costs = [Decimal(one.cost) for one in found.tenants]
    assert costs == sorted(costs, reverse=True)
    assert all(0 < Decimal(one.idle_cost) < Decimal(one.cost) for one in found.tenants)


def test_what_nobody_pays_for_is_told_by_cause(found: FleetCosts) -> None:
    """Parts outside all slices apart from free devices; and the call that the platform ended."""
    by_cause = {one.cause: one.cost for one in found.operator}
    assert by_cause["fragmentation"] == money(cost_of(DAYS * 20 * HOUR, 285_714, 3_949_200_000))
    l4 = cost_of(14 * 6 * HOUR, 1_000_000, 799_200_000) + cost_of(16 * 6 * HOUR, 1_000_000, 720_000_000)
    assert by_cause["unused"] == money(l4)
    assert Decimal(by_cause["retries"]) > 0
    assert Decimal(by_cause["provisioning"]) > 0


def test_a_device_has_earned_what_its_tenants_paid(found: FleetCosts) -> None:
    """A spot device's value is that of spot; what one costs is what the operator says."""
    by_name = {one.device: one for one in found.devices}
    free, embed = by_name["l4-free"], by_name["h100-embed"]
    assert (free.sold, free.revenue, free.cost) == (0.0, "0.000000000000", None)
    assert abs(Decimal(embed.cost or 0) - Decimal(embed.hours) * Decimal("1.9")) < Decimal("1e-6")
    assert 0 < embed.sold < 0.2
    assert Decimal(embed.revenue) < Decimal(embed.list_value)


def test_all_devices_have_earned_what_all_tenants_owe(month: Ledger) -> None:
    """Over both months, and of each, but for what was booked in November and is of October: an hour that came late.

    What was given back of the call that the platform ended is earned by nobody. Amounts are rounded to 12 places.
    """
    names, october = ("acme", "birch", "cedar"), "2026-10-01"
    late = sum(Decimal(line.cost) for name in names for line in late_lines(month, name, FIRST, UNTIL))
    assert late > 0
    for first, until, moved in ((october, UNTIL, 0), (FIRST, UNTIL, -late), (october, FIRST, late)):
        devices = fleet_costs([], device_sums(month, first, until), {}, "USD").devices
        owed = sum(Decimal(usage_report(month, name, first, until, ()).total.cost) for name in names)
        assert sum(Decimal(one.revenue) for one in devices) == pytest.approx(owed + moved, abs=Decimal("1e-11"))


def test_what_devices_cost_is_read_from_text() -> None:
    """Exactly; anything else names the field."""
    assert read_paid("h100:1.9, l4:0.35") == {"h100": 1_900_000_000, "l4": 350_000_000}
    assert read_paid("") == {}
    for wrong in ("h100", "h100:-1", "h100:1e9", ":1", "h100:1.0000000001"):
        with pytest.raises(BadInput, match="prices and dollars"):
            read_paid(wrong)
