"""What the ledger says of a tenant: usage by day, and receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from pilotlight_core.model.units import cost_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import receipt_line, usage_day, version_tags
from pilotlight_gateway.ledger.usage_report import GROUPS, UsageReport, summarise, tags_in


def usage_report(ledger: Ledger, tenant: str, first: str, until: str, groups: Sequence[str] = GROUPS) -> UsageReport:
    """A tenant's usage of the days from `first` to before `until`. Blocks: call it in a thread."""
    own = sa.select(usage_day).where(usage_day.c.tenant == tenant, usage_day.c.day >= first, usage_day.c.day < until)
    if tags_in(groups):
        same = sa.and_(version_tags.c.tenant == usage_day.c.tenant, version_tags.c.version == usage_day.c.version)
        own = own.add_columns(version_tags.c.tags).outerjoin_from(usage_day, version_tags, same)
    return summarise(ledger.read(own), groups, ledger.book.currency)


def receipts(ledger: Ledger, tenant: str, call_id: str) -> list[dict[str, Any]]:
    """The lines of a call's receipt, with `cost` in dollars as a Fraction. Blocks: call it in a thread."""
    rows = ledger.read(sa.select(receipt_line).where(receipt_line.c.call == call_id, receipt_line.c.tenant == tenant))
    return [row | {"cost": cost_of(row["ns"], row["ppm"], row["rate"])} for row in rows]
