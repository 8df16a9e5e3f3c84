"""The answers about money: forecasts, invoices, and what the fleet costs its operator. Amounts are decimal strings."""

from __future__ import annotations

import msgspec


class MonthForecast(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/usage/forecast`: what a month will have cost at its end."""

    month: str
    """Such as `2026-11`, UTC."""
    so_far: str
    expected: str
    low: str | None = None
    """`low` and `high`: of ten forecasts of the days that are known, eight were as near as this; null: too few days
    are known to say."""
    high: str | None = None
    error: float | None = None
    """The same as a part of what is to come: 0.1 is a tenth more or less."""
    method: str = ""
    """Which of the simple forecasts missed the past least; "": nothing was used yet."""
    days: int = 0
    """Whole days that it knows."""
    currency: str = "USD"


class InvoiceLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a function's time in one state cost, at one rate."""

    function: str
    """app.function"""
    state: str
    price: str
    usd_per_hour: str
    """Of a whole device, a core or a GiB, by the list; of units, of a million."""
    hours: str
    """Of a whole device, a core or a GiB, to 12 places; of units, millions of them."""
    calls: int
    cost: str
    """After the discount."""
    discount: str = "0"
    """What is not paid of each dollar of the list price: 0.2 are 20 %."""


class LateLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is in an invoice and belongs to a day before its month: that day was closed when it became known."""

    day: str
    why: str
    """`late`: usage that came late; else why it was corrected, as `platform_fault`."""
    cost: str


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/billing/invoices/{month}`. A final one never changes."""

    number: str
    tenant: str
    month: str
    state: str
    """draft: the month runs; grace: it is over, and late usage is still added; final: it is closed."""
    final_from: str
    """The first day on which it is closed, UTC."""
    lines: tuple[InvoiceLine, ...]
    of_before: tuple[LateLine, ...]
    """What of `lines` is of earlier months."""
    total: str
    """The exact sum of the lines, rounded once to 12 places."""
    amount: str
    """What is to be paid: the exact sum, rounded once to cents, half to even."""
    calls: int
    discount: str = "0"
    """What `total` is below the list prices."""
    currency: str = "USD"


class InvoiceHead(msgspec.Struct, frozen=True, kw_only=True):
    number: str
    month: str
    state: str
    amount: str


class InvoiceList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/billing/invoices`, the newest first."""

    invoices: tuple[InvoiceHead, ...]
    currency: str = "USD"


class ThresholdLine(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold of a budget that was reached."""

    at: str
    """The instant, in UTC."""
    tenant: str
    budget: str
    percent: int
    usd: str
    """The budget's amount, then."""
    function: str | None = None
    key: str | None = None


class TenantSpend(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    cost: str
    idle_cost: str
    """Of it, what paid for containers without calls."""
    calls: int
    gpu_seconds: float


class OperatorCost(msgspec.Struct, frozen=True, kw_only=True):
    """What nobody pays for, at the prices of tenants."""

    cause: str
    """unused, fragmentation, blank, provisioning, prewarm, retries or other."""
    cost: str
    gpu_seconds: float


class DeviceReturn(msgspec.Struct, frozen=True, kw_only=True):
    """What a device earned, and what it costs."""

    node: str
    device: str
    gpu: str
    hours: float
    """In which it was metered, as a whole device."""
    sold: float
    """The part of them that tenants paid for."""
    revenue: str
    """With cores and memory of the host; before corrections, which name no device."""
    list_value: str
    """Of all its hours, at the prices of tenants."""
    cost: str | None = None
    """Of all its hours, at what the operator said that they cost; null: not said."""


class FleetCosts(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/usage/fleet`."""

    tenants: tuple[TenantSpend, ...]
    """Who spends most, first."""
    operator: tuple[OperatorCost, ...]
    devices: tuple[DeviceReturn, ...]
    currency: str = "USD"
