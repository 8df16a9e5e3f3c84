"""FOCUS 1.2: usage as the cost tools of companies read it (focus.finops.org). Pure.

A row is a function's time of a day in one state at one rate. A quantity is rounded to `QUANTITY_PLACES`, and its cost
is that quantity times the price, exactly: the sum of a million rows is the ledger's to the pico-dollar. List prices are
those of everybody, contracted ones what the tenant pays with its discount. The `x_` columns have the ledger's own
integers. The last columns are those by which readers of FOCUS 0.5, its validator among
them, know what has another name now.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any

from pilotlight_core.model.devices import (
    CHARGES,
    CORE_PRICE,
    MEMORY_PRICE,
    MINIMUM_PRICE,
    gpu_of_price,
    is_cpu_price,
)
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.units import NANO_USD, NS_PER_HOUR, NS_PER_S, UNIT_PRICES, WHOLE_DEVICE
from pilotlight_gateway.ledger.usage_report import UsageRow
from pilotlight_gateway.reports.billing_periods import days_of_month

GROUPS = ("day", "tenant", "app", "function", "version", "state", "price", "ppm", "key", "purchase", "region", "tags")
"""Of the sums that it is made of."""
QUANTITY_PLACES = 18
EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
ISSUER = "Pilotlight"
HELD = "Unused capacity"
"""What the operator holds itself has no function."""

MANDATORY = (
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost",
    "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ServiceCategory", "ServiceName",
)  # fmt: skip
CONDITIONAL = (
    "BillingAccountType", "ChargeFrequency", "CommitmentDiscountCategory", "CommitmentDiscountId",
    "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType", "ConsumedQuantity", "ConsumedUnit",
    "ContractedUnitPrice", "InvoiceId", "ListUnitPrice", "PricingCategory", "RegionId", "RegionName", "ResourceId",
    "ResourceName", "ResourceType", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId",
    "SubAccountId", "SubAccountName", "SubAccountType", "Tags",
)  # fmt: skip
OWN = (
    "x_ApiKeyId", "x_Calls", "x_FunctionVersion", "x_NanoDiscount", "x_NanoUsdPerHour", "x_Nanoseconds", "x_Ppm",
    "x_State",
)  # fmt: skip
OLDER = ("ChargeType", "InvoiceIssuer", "Provider", "Publisher", "ResourceID")
"""Of FOCUS 0.5."""
COLUMNS = (*sorted((*MANDATORY, *CONDITIONAL)), *OWN, *OLDER)


def as_focus(rows: Iterable[UsageRow], currency: str) -> str:
    """Sums of the ledger by `GROUPS` as FOCUS's CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(focus_rows(rows, currency))
    return out.getvalue()


def focus_rows(rows: Iterable[UsageRow], currency: str) -> Iterator[dict[str, str]]:
    """The rows, by day and function."""
    for row in sorted(rows, key=_order):
        if row["ns"] or row["calls"]:
            yield dict.fromkeys(COLUMNS, "") | _charge(row, currency) | _what(row)


def focus_cost(row: UsageRow) -> tuple[Decimal, Decimal, Decimal]:
    """The quantity in hours, of units in millions; the list price of one, and the contracted one, exactly."""
    with localcontext(EXACT):
        hours = Decimal(row["ns"] * row["ppm"]) / Decimal(WHOLE_DEVICE * NS_PER_HOUR)
        quantity = hours.quantize(Decimal(1).scaleb(-QUANTITY_PLACES))
        price = Decimal(row["rate"]).scaleb(-9)
        return quantity, price, price * Decimal(NANO_USD - row["discount"]).scaleb(-9)


def _charge(row: UsageRow, currency: str) -> dict[str, str]:
    quantity, price, contracted = focus_cost(row)
    of_units = row["price"] in UNIT_PRICES
    with localcontext(EXACT):
        consumed = Decimal(row["ns"] * row["ppm"]) / Decimal(WHOLE_DEVICE * NS_PER_S)
        cost, listed = _decimal(quantity * contracted), _decimal(quantity * price)
    first, until = days_of_month(row["day"][:7])
    unit = _unit(row["price"])
    what = "counted by" if of_units else "least of" if row["price"] == MINIMUM_PRICE else "time of"
    day = date.fromisoformat(row["day"])
    return {
        "BilledCost": cost, "ContractedCost": cost, "EffectiveCost": cost, "ListCost": listed,
        "BillingCurrency": currency, "BillingPeriodStart": _instant(first), "BillingPeriodEnd": _instant(until),
        "ChargePeriodStart": _instant(row["day"]), "ChargePeriodEnd": _instant((day + timedelta(days=1)).isoformat()),
        "ChargeCategory": "Usage", "ChargeType": "Usage", "ChargeFrequency": "Usage-Based",
        "ChargeDescription": f"{row['state']} {what} {_name(row)} on {row['price']}",
        "ConsumedQuantity": _decimal(Decimal(row["ns"]) if of_units else consumed),
        "ConsumedUnit": unit if of_units else f"{unit}-Seconds",
        "PricingQuantity": _decimal(quantity), "PricingUnit": f"1000000 {unit}" if of_units else f"{unit}-Hours",
        "PricingCategory": _category(row),
        "ContractedUnitPrice": _decimal(contracted), "ListUnitPrice": _decimal(price),
    }  # fmt: skip


def _what(row: UsageRow) -> dict[str, str]:
    tenant, name, month = row["tenant"] or "operator", _name(row), row["day"][:7]
    resource = f"{tenant}:{name}" if row["app"] else f"{tenant}:{row['price']}"
    return {
        "BillingAccountId": tenant, "BillingAccountName": tenant, "BillingAccountType": "Tenant",
        "InvoiceId": f"{tenant}-{month}" if row["tenant"] else "",
        "InvoiceIssuerName": ISSUER, "InvoiceIssuer": ISSUER, "ProviderName": ISSUER, "Provider": ISSUER,
        "PublisherName": ISSUER, "Publisher": ISSUER,
        "RegionId": row["region"], "RegionName": row["region"],
        "ResourceId": resource, "ResourceID": resource, "ResourceName": name, "ResourceType": "Function",
        "ServiceCategory": "Compute", "ServiceSubcategory": "Serverless Compute", "ServiceName": "Pilotlight Functions",
        "SkuId": row["price"], "SkuMeter": _meter(row["price"]), "SkuPriceId": f"{row['price']}@{row['rate']}",
        "SkuPriceDetails": f'{{"GpuType":"{gpu_of_price(row["price"])}"}}',
        "SubAccountId": row["app"], "SubAccountName": row["app"], "SubAccountType": "App" if row["app"] else "",
        "Tags": row["tags"] or "{}",
        "x_ApiKeyId": row["key"], "x_Calls": str(row["calls"]), "x_FunctionVersion": row["version"],
        "x_NanoDiscount": str(row["discount"]), "x_NanoUsdPerHour": str(row["rate"]),
        "x_Nanoseconds": str(row["ns"]), "x_Ppm": str(row["ppm"]),
        "x_State": row["state"],
    }  # fmt: skip


def _order(row: UsageRow) -> tuple[Any, ...]:
    return (*(row[name] or "" for name in GROUPS if name != "ppm"), row["ppm"], row["rate"], row["discount"])


def _name(row: UsageRow) -> str:
    return f"{row['app']}.{row['function']}" if row["app"] else HELD


def _category(row: UsageRow) -> str:
    return "Dynamic" if row["purchase"] == Purchase.SPOT else "Standard"


def _meter(price: str) -> str:
    return price if price in UNIT_PRICES else f"{_unit(price)} time"


def _unit(price: str) -> str:
    if price in CHARGES:
        return "Device" if price == MINIMUM_PRICE else price
    if price == CORE_PRICE:
        return "Core"
    return "GiB" if price == MEMORY_PRICE else "Host" if is_cpu_price(price) else "GPU"


def _decimal(value: Decimal) -> str:
    """Without an exponent or needless zeros, and always with a point: readers take other columns for integers."""
    whole, _, part = f"{value:f}".partition(".")
    return f"{whole}.{part.rstrip('0') or '0'}"


def _instant(day: str) -> str:
    return f"{day}T00:00:00Z"
