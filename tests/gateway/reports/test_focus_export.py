"""FOCUS 1.2 of the seeded month: what its rules demand, and that its sums are the ledger's."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from pilotlight_core.model.units import COST_UNITS
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import usage_sums
from pilotlight_gateway.ledger.usage_report import cost_units
from pilotlight_gateway.reports.focus_export import COLUMNS, GROUPS, MANDATORY, as_focus
from tests.gateway.reports.seeded_month import FIRST, UNTIL

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT00:00:00Z")
NUMBER = re.compile(r"-?[0-9]+[.][0-9]+")
MONEY = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost", "ContractedUnitPrice", "ListUnitPrice")
NULLABLE = ("BillingAccountName", "ChargeClass", "ChargeDescription", "PricingQuantity", "PricingUnit")


@pytest.fixture(scope="module")
def rows(month: Ledger) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_focus(usage_sums(month, None, FIRST, UNTIL, GROUPS), "USD"))))


def test_mandatory_columns_are_there_and_have_values(rows: list[dict[str, str]]) -> None:
    """Others may be empty, but not missing."""
    assert len(rows) > 1_000
    assert set(MANDATORY) < set(COLUMNS) == set(rows[0])
    for name in set(MANDATORY) - set(NULLABLE):
        assert all(row[name] for row in rows), name


def test_periods_are_whole_and_their_ends_exclusive(rows: list[dict[str, str]]) -> None:
    """A day within its month."""
    for row in rows:
        begin, end = row["ChargePeriodStart"], row["ChargePeriodEnd"]
        assert all(
            INSTANT.fullmatch(row[f"{kind}Period{edge}"]) for kind in ("Charge", "Billing") for edge in ("Start", "End")
        )
        assert row["BillingPeriodStart"] <= begin < end <= row["BillingPeriodEnd"]
    assert {(row["BillingPeriodStart"], row["BillingPeriodEnd"]) for row in rows} == {
        ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z")
    }


def test_a_cost_is_its_quantity_times_its_price(rows: list[dict[str, str]]) -> None:
    """Exactly, and written without an exponent, a sign of plus or a comma."""
    with localcontext(prec=60):
        for row in rows:
            assert all(NUMBER.fullmatch(row[name]) for name in (*MONEY, "PricingQuantity", "ConsumedQuantity"))
            product = Decimal(row["PricingQuantity"]) * Decimal(row["ContractedUnitPrice"])
            assert product == Decimal(row["ContractedCost"]) == Decimal(row["BilledCost"])


def test_its_sum_is_the_ledgers(month: Ledger, rows: list[dict[str, str]]) -> None:
    """Of each tenant, to a thousandth of a nano-dollar; the ledger's own integers are there to the last one."""
    told: dict[str, Fraction] = {}
    exact: dict[str, int] = {}
    for row in rows:
        told[row["BillingAccountId"]] = told.get(row["BillingAccountId"], Fraction(0)) + Fraction(row["BilledCost"])
        integers = int(row["x_Nanoseconds"]) * int(row["x_Ppm"]) * int(row["x_NanoUsdPerHour"])
        integers *= 10**9 - int(row["x_NanoDiscount"])
        exact[row["BillingAccountId"]] = exact.get(row["BillingAccountId"], 0) + integers
    paid: dict[str, int] = {}
    for sums in usage_sums(month, None, FIRST, UNTIL, ("tenant",)):
        name = sums["tenant"] or "operator"
        paid[name] = paid.get(name, 0) + cost_units(sums)
    assert exact == paid
    assert all(abs(told[name] - Fraction(units, COST_UNITS)) < Fraction(1, 10**12) for name, units in paid.items())


def test_what_was_sold_is_named(rows: list[dict[str, str]]) -> None:
    """Functions as resources, apps as sub-accounts, spot as a price that moves; tags; and what nobody paid for."""
    chat = _only(rows, "birch:llm.chat", SkuId="h100", x_State="busy", ChargePeriodStart="2026-11-03T00:00:00Z")
    assert (chat["PricingCategory"], chat["SubAccountId"], chat["RegionId"]) == ("Dynamic", "llm", "eu")
    assert (chat["PricingUnit"], chat["ConsumedUnit"], chat["InvoiceId"]) == (
        "GPU-Hours",
        "GPU-Seconds",
        "birch-2026-11",
    )
    memory = _only(rows, "birch:llm.chat", SkuId="memory_gib", x_State="busy", ChargePeriodStart="2026-11-03T00:00:00Z")
    assert (memory["PricingUnit"], memory["x_Calls"]) == ("GiB-Hours", "0")
    assert {row["Tags"] for row in rows if row["ResourceId"] == "acme:shop.rank"} == {'{"team":"shop"}'}
    assert {row["SkuPriceId"] for row in rows if row["ResourceName"] == "shop.rank"} == {"l4@799200000", "l4@720000000"}
    unsold = [row for row in rows if row["ResourceName"] == "Unused capacity"]
    assert {row["BillingAccountId"] for row in unsold} == {"operator"}
    assert {row["InvoiceId"] for row in unsold} == {""}


def _only(rows: list[dict[str, str]], resource: str, **values: str) -> Mapping[str, str]:
    (found,) = [
        row for row in rows
        if row["ResourceId"] == resource and all(row[name] == value for name, value in values.items())
    ]  # fmt: skip
    return found
