"""A tenant's invoice of a month, from the sums of its days. Pure.

No invoice is stored: the sums of closed days never change, so a final invoice is the same whenever it is asked for.
What comes late, or is corrected, after its month is closed is in the sums of the next one, and told there.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction

from pilotlight_core.model.api.billing_api import Invoice, InvoiceHead, InvoiceLine, LateLine
from pilotlight_core.model.units import NS_PER_HOUR, WHOLE_DEVICE, money, units_money
from pilotlight_gateway.ledger.usage_report import UsageRow, cost_units
from pilotlight_gateway.reports.billing_periods import final_from, period_state

GROUPS = ("app", "function", "state", "price")
"""Of the sums that it is made of."""
CENTS = 2
MONTHS_SHOWN = 24


def invoice_of(
    tenant: str,
    month: str,
    rows: Iterable[UsageRow],
    of_before: Iterable[LateLine],
    *,
    open_from: str,
    at: float,
    currency: str,
) -> Invoice:
    """The invoice of a month such as `2026-11`, from the sums of its days by `GROUPS`, at the unix second `at`."""
    sums: dict[tuple[str, str, str, int, int], list[int]] = {}
    off = 0
    for row in rows:
        name = f"{row['app']}.{row['function']}"
        line = sums.setdefault((name, row["state"], row["price"], row["rate"], row["discount"]), [0, 0, 0])
        off += row["ns"] * row["ppm"] * row["rate"] * row["discount"]
        line[0] += row["ns"] * row["ppm"]
        line[1] += row["calls"]
        line[2] += cost_units(row)
    exact = sum(cost for _, _, cost in sums.values())
    return Invoice(
        number=number_of(tenant, month),
        tenant=tenant,
        month=month,
        state=period_state(month, open_from, at),
        final_from=final_from(month),
        lines=tuple(
            InvoiceLine(
                function=function,
                state=state,
                price=price,
                usd_per_hour=_dollars(rate),
                discount=_dollars(discount),
                hours=money(Fraction(ns_ppm, WHOLE_DEVICE * NS_PER_HOUR)),
                calls=calls,
                cost=units_money(cost),
            )
            for (function, state, price, rate, discount), (ns_ppm, calls, cost) in sorted(sums.items())
            if ns_ppm or calls
        ),
        of_before=tuple(of_before),
        total=units_money(exact),
        amount=units_money(exact, CENTS),
        discount=units_money(off),
        calls=sum(calls for _, calls, _ in sums.values()),
        currency=currency,
    )


def invoice_heads(tenant: str, rows: Iterable[UsageRow], *, open_from: str, at: float) -> tuple[InvoiceHead, ...]:
    """The months with usage, from the sums of their days, the newest first."""
    sums: dict[str, int] = {}
    for row in rows:
        month = row["day"][:7]
        sums[month] = sums.get(month, 0) + cost_units(row)
    return tuple(
        InvoiceHead(
            number=number_of(tenant, month), month=month, state=period_state(month, open_from, at),
            amount=units_money(cost, CENTS),
        )
        for month, cost in sorted(sums.items(), reverse=True)
    )  # fmt: skip


def months_shown(at: float) -> tuple[str, str]:
    """The days that `invoice_heads` is asked of: from the first of the oldest month shown to tomorrow."""
    today = datetime.fromtimestamp(at, UTC).date()
    years, months = divmod(today.year * 12 + today.month - MONTHS_SHOWN, 12)
    return date(years, months + 1, 1).isoformat(), (today + timedelta(days=1)).isoformat()


def number_of(tenant: str, month: str) -> str:
    return f"{tenant}-{month}"


def _dollars(nano: int) -> str:
    with localcontext(prec=40):
        return f"{Decimal(nano).scaleb(-9).normalize():f}"
