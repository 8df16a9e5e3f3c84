"""A tenant's invoices: draft while the month runs, final when its days are closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.billing_api import Invoice, InvoiceList
from pilotlight_gateway.http.endpoints.billing.usage import WHOSE, scope_of
from pilotlight_gateway.http.protocol.api_operations import Operation, json_answer
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.reports import invoices
from pilotlight_gateway.reports.billing_periods import days_of_month


@dataclass(frozen=True, kw_only=True)
class InvoiceServices:
    """The ports of these endpoints. `wall` is the clock, in unix seconds."""

    ledger: LedgerReader
    wall: Callable[[], float] = time.time


async def list_invoices(request: Request, services: InvoiceServices) -> Response:
    """`GET /v1/billing/invoices`."""
    at = services.wall()
    return json_answer(await asyncio.to_thread(_list, services.ledger, _tenant_of(request, at), at))


async def show_invoice(request: Request, services: InvoiceServices) -> Response:
    """`GET /v1/billing/invoices/{month}`."""
    at, month = services.wall(), request.path_params["month"]
    days = days_of_month(month)
    return json_answer(await asyncio.to_thread(_invoice, services.ledger, _tenant_of(request, at), month, days, at))


def _tenant_of(request: Request, at: float) -> str:
    return scope_of(request, at).tenant or ""


def _list(ledger: LedgerReader, tenant: str, at: float) -> InvoiceList:
    rows = ledger.sums(tenant, *invoices.months_shown(at), ("day",))
    heads = invoices.invoice_heads(tenant, rows, open_from=ledger.open_from(), at=at)
    return InvoiceList(invoices=heads, currency=ledger.book.currency)


def _invoice(ledger: LedgerReader, tenant: str, month: str, days: tuple[str, str], at: float) -> Invoice:
    # First: whatever is closed now has all of its sums already.
    open_from = ledger.open_from()
    rows, late = ledger.sums(tenant, *days, invoices.GROUPS), ledger.late_lines(tenant, *days)
    return invoices.invoice_of(
        tenant, month, rows, late, open_from=open_from, at=at, currency=ledger.book.currency
    )  # fmt: skip


INVOICES = (
    Operation(
        method="GET", path="/v1/billing/invoices", name="listInvoices", endpoint=list_invoices,
        about="The months with usage, the newest first.", scopes=("read", "operator"), answer=InvoiceList,
        errors=("bad_input",), parameters=WHOSE[:1],
    ),
    Operation(
        method="GET", path="/v1/billing/invoices/{month}", name="getInvoice", endpoint=show_invoice,
        about="A month's invoice: draft, in grace or final.", scopes=("read", "operator"), answer=Invoice,
        errors=("bad_input",), parameters=WHOSE[:1],
    ),
)  # fmt: skip
