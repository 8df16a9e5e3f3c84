"""What the ledger says of a tenant: usage by day, and receipts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import sqlalchemy as sa

from pilotlight_core.model.api.receipt_api import CallReceipt, ReceiptLine
from pilotlight_core.model.devices import HOST_PRICES
from pilotlight_core.model.units import NS_PER_S, WHOLE_DEVICE, cost_of, money
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import cold_start, receipt_line, usage_day, version_tags
from pilotlight_gateway.ledger.usage_report import GROUPS, UsageReport, summarise, tags_in

GIB = 2**30
MOST_LINES = 1_000
"""Of one receipt: of a call that runs for a month, over many prices."""


def call_receipt_of(ledger: Ledger, tenant: str, call_id: str) -> CallReceipt | None:
    """A call's receipt; None: there is none, or none yet. Blocks: call it in a thread."""
    rows = receipts(ledger, tenant, call_id)
    if not rows:
        return None
    starts = ledger.read(sa.select(cold_start).where(cold_start.c.call_id == call_id, cold_start.c.tenant == tenant))
    of_device = [row for row in rows if row["price"] not in HOST_PRICES]
    return CallReceipt(
        id=call_id,
        lines=tuple(map(_line, rows)),
        cost=money(sum((row["cost"] for row in rows), Fraction(0))),
        gpu_seconds=sum(row["ns"] * row["ppm"] for row in of_device) / (WHOLE_DEVICE * NS_PER_S),
        vram_gib_seconds=sum(row["ns"] * row["memory"] for row in of_device) / (GIB * NS_PER_S),
        key=next((row["key_id"] for row in rows if row["key_id"]), ""),
        cold_start_ms=sum(start["us"] for start in starts) / 1000.0,
        cold_start_billed=any(start["billed"] for start in starts),
        currency=ledger.book.currency,
    )


def _line(row: dict[str, Any]) -> ReceiptLine:
    return ReceiptLine(
        day=row["day"],
        function=f"{row['app']}.{row['function']}",
        version=row["version"],
        price=row["price"],
        ppm=row["ppm"],
        usd_per_hour=f"{Decimal(row['rate']).scaleb(-9).normalize():f}",
        ns=row["ns"],
        cost=money(row["cost"]),
        memory=row["memory"],
        outcome=row["outcome"],
        fault=row["fault"] or "",
        batch_size=row["batch_size"],
        units=msgspec.json.decode(row["units"]) if row["units"] else {},
        tags=msgspec.json.decode(row["tags"]) if row["tags"] else {},
    )


def usage_report(ledger: Ledger, tenant: str, first: str, until: str, groups: Sequence[str] = GROUPS) -> UsageReport:
    """A tenant's usage of the days from `first` to before `until`. Blocks: call it in a thread."""
    own = sa.select(usage_day).where(usage_day.c.tenant == tenant, usage_day.c.day >= first, usage_day.c.day < until)
    if tags_in(groups):
        same = sa.and_(version_tags.c.tenant == usage_day.c.tenant, version_tags.c.version == usage_day.c.version)
        own = own.add_columns(version_tags.c.tags).outerjoin_from(usage_day, version_tags, same)
    return summarise(ledger.read(own), groups, ledger.book.currency)


def receipts(ledger: Ledger, tenant: str, call_id: str) -> list[dict[str, Any]]:
    """The lines of a call's receipt, with `cost` in dollars as a Fraction. Blocks: call it in a thread."""
    own = sa.select(receipt_line).where(receipt_line.c.call == call_id, receipt_line.c.tenant == tenant)
    rows = ledger.read(own.order_by(receipt_line.c.day, receipt_line.c.ns.desc()).limit(MOST_LINES))
    return [row | {"cost": cost_of(row["ns"], row["ppm"], row["rate"])} for row in rows]
