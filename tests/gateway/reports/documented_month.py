"""The files of `docs/reports/`, made of the seeded month: `python -m tests.gateway.reports.documented_month`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import late_lines, usage_sums
from pilotlight_gateway.reports import focus_export, invoices, usage_page
from tests.gateway.reports.seeded_month import FIRST, MADE, UNTIL, fold_month

FOLDER = Path(__file__).parents[3] / "docs" / "reports"


def invoice(ledger: Ledger) -> str:
    """Of the tenant with late usage and a correction."""
    found = invoices.invoice_of(
        "acme",
        "2026-11",
        usage_sums(ledger, "acme", FIRST, UNTIL, invoices.GROUPS),
        late_lines(ledger, "acme", FIRST, UNTIL),
        open_from=ledger.open_from(),
        at=MADE,
        currency="USD",
    )
    return msgspec.json.format(msgspec.json.encode(found)).decode() + "\n"


def focus(ledger: Ledger) -> str:
    """Of the smallest tenant: a row for each day and state."""
    return focus_export.as_focus(usage_sums(ledger, "cedar", FIRST, UNTIL, focus_export.GROUPS), "USD")


def page(ledger: Ledger, tenant: str | None = "acme") -> str:
    rows = usage_sums(ledger, tenant, FIRST, UNTIL, usage_page.GROUPS)
    return usage_page.as_page(
        rows, tenant=tenant, first=FIRST, until=UNTIL, at=MADE, forecast=None, currency="USD"
    )  # fmt: skip


FILES: Mapping[str, Callable[[Ledger], str]] = {
    "invoice-acme-2026-11.json": invoice,
    "focus-cedar-2026-11.csv": focus,
    "usage-acme-2026-11.html": page,
    "usage-all-2026-11.html": lambda ledger: page(ledger, None),
}


def main() -> None:
    """Write them anew."""
    ledger = fold_month("sqlite://")
    FOLDER.mkdir(exist_ok=True)
    for name, make in FILES.items():
        (FOLDER / name).write_text(make(ledger))
        print(f"wrote {FOLDER / name}")
    ledger.close()


if __name__ == "__main__":
    main()
